#!/bin/sh
# full_disk.sh on|off: a file system of 4 KiB for the content of the archive.
set -eu
if [ "$1" = off ]; then
    umount /usr/local/cuda-8.0
    rmdir /usr/local/cuda-8.0
    exit
fi
mkdir /usr/local/cuda-8.0
mount -t tmpfs -o size=4k none /usr/local/cuda-8.0
