#!/bin/bash
# faults.sh full_packages VERSION|full_modules|undo: disks without room, made with mounts.
set -eu
full() { # a file system without a byte left
    mkdir -p "$1"
    mount -t tmpfs -o size=4k none "$1"
    head -c 4096 /dev/zero > "$1/filler"
}
case $1 in
    full_packages) full "/usr/src/nvidia-$2" ;; # the package of the module has its source there
    full_modules) full "/lib/modules/$(grubby --default-kernel | sed 's/.*vmlinuz-//')/kernel/drivers/video" ;;
    undo)
        for place in /usr/src/nvidia-* /lib/modules/*/kernel/drivers/video; do
            if mountpoint -q "$place"; then
                umount "$place"
                rmdir "$place"
            fi
        done
        ;;
    *) exit 2 ;;
esac
