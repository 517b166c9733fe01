#!/bin/bash
# Writes what a driver could change on a host: files with their digests, packages, boot entries, contents of each initramfs.
{
    find /etc /boot/loader /usr/bin /usr/lib64 /usr/lib/modules /usr/src /usr/local /usr/lib/systemd/system /opt/deeplearning /var/lib/dkms \
        \( -type f -o -type l \) ! -path '/etc/ld.so.cache' ! -path '/etc/*.new' -print0 2> /dev/null | sort -z |
        while IFS= read -r -d '' path; do
            if [ -L "$path" ]; then echo "link $path $(readlink "$path")"; else echo "file $(sha256sum "$path")"; fi
        done
    rpm -qa | sort
    for image in /boot/initramfs-*; do
        echo "$image"
        lsinitrd "$image" | grep -o -E '[^ ]*(nouveau|modprobe\.d)[^ ]*$' || true
    done
} > "$1"
