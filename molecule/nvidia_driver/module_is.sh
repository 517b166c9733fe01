#!/bin/bash
# module_is.sh VERSION: every installed kernel has this module and nothing else is left of another version.
set -eu
for kernel in /boot/vmlinuz-*; do
    found=$(modinfo -k "${kernel#*vmlinuz-}" -F version nvidia)
    [ "$found" = "$1" ] || { echo "$kernel has $found"; exit 1; }
    modinfo -k "${kernel#*vmlinuz-}" -F vermagic nvidia | grep -q "^${kernel#*vmlinuz-} " || { echo "$kernel has a module of another kernel"; exit 1; }
done
found=$(ls /usr/lib64/libcuda.so.*.*)
[ "$found" = "/usr/lib64/libcuda.so.$1" ] || { echo "libraries: $found"; exit 1; }
if rpm --quiet -q nvidia-kmod-common; then
    grep -q "nvidia-kmod-common-3:$1" /etc/dnf/plugins/versionlock.list || { echo "not locked"; exit 1; }
fi
/opt/deeplearning/bin/gpu-check versions_agree module_for_boot_kernel linker_finds_the_driver
