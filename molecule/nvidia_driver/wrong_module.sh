#!/bin/bash
# A module that was built for the running kernel is in the tree of the next boot's; gpu-check must report it.
set -eu
running=$(uname -r)
next=$(grubby --default-kernel | sed 's/.*vmlinuz-//')
from=$(modinfo -k "$running" -F filename nvidia)
to=$(modinfo -k "$next" -F filename nvidia)
cp "$from" "$to"
said=$(/opt/deeplearning/bin/gpu-check module_for_boot_kernel) && { echo "gpu-check passes it: $said"; exit 1; }
case $said in
    *"was built for $running"*) ;;
    *) echo "gpu-check says: $said"; exit 1 ;;
esac
