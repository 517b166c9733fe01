#!/bin/sh
# debian_tree.sh ROOT DRIVER KERNEL: the files of Debian's packages, as far as the role, dkms and gpu-check look at them. What
# debian.yml asks of one package is taken from here.
set -eu
root=$1 driver=$2 kernel=$3
here=$(dirname "$0")
sh "$here/driver_tree.sh" "$root/common" "$driver"
current=usr/lib/x86_64-linux-gnu/nvidia/current
mkdir -p "$root/usr/bin" "$root/$current" "$root/usr/lib/systemd/system" "$root/usr/sbin" "$root/usr/lib/dkms" "$root/etc/dkms" "$root/var/lib/dkms" \
    "$root/etc/nvidia/current" "$root/etc/modprobe.d" "$root/etc/ld.so.conf.d" "$root/boot"
mv "$root/common/usr/bin/nvidia-smi" "$root/common/usr/bin/nvidia-persistenced" "$root/common/usr/bin/nvidia-modprobe" "$root/usr/bin"
mv "$root/common/usr/lib/systemd/system/nvidia-persistenced.service" "$root/usr/lib/systemd/system"
for name in libcuda libnvidia-ml libnvidia-cfg; do
    mv "$root"/common/usr/lib64/$name.so* "$root/$current"
done
echo "/$current" > "$root/etc/ld.so.conf.d/nvidia-stand-in.conf" # Debian's alternatives link them into the linker's directories
# The module has a name of its own; this line leads modprobe from the usual one to it.
echo 'alias nvidia nvidia-current' > "$root/etc/modprobe.d/nvidia.conf"
echo '# stand-in' > "$root/etc/nvidia/current/nvidia-modprobe.conf"
mkdir -p "$root/usr/src/nvidia-current-$driver"
sed 's/^PACKAGE_NAME=.*/PACKAGE_NAME="nvidia-current"/' "$root/common/usr/src/nvidia-$driver/dkms.conf" > "$root/usr/src/nvidia-current-$driver/dkms.conf"
echo 'DEST_MODULE_NAME[0]="nvidia-current"' >> "$root/usr/src/nvidia-current-$driver/dkms.conf"
install -m 0755 "$here/dkms" "$root/usr/sbin/dkms"
install -m 0755 "$here/elf.py" "$root/usr/lib/dkms/elf.py"
echo '# Settings of dkms' > "$root/etc/dkms/framework.conf"
echo stand-in > "$root/boot/vmlinuz-$kernel"
modules=$root/lib/modules/$kernel
mkdir -p "$modules/kernel/drivers/gpu/drm/nouveau" "$root/usr/src/linux-headers-$kernel"
python3 "$here/elf.py" module "$modules/kernel/drivers/gpu/drm/nouveau/nouveau.ko" name=nouveau license=GPL "vermagic=$kernel SMP preempt mod_unload modversions "
touch "$modules/modules.builtin" "$modules/modules.builtin.modinfo" "$modules/modules.order"
echo "# headers of $kernel" > "$root/usr/src/linux-headers-$kernel/Makefile"
rm -r "$root/common"
