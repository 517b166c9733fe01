#!/bin/sh
# gpu_in_sysfs.sh DEVICE: one GPU of NVIDIA's on the PCI bus, and a modprobe that leaves the machine's own kernel alone.
set -eu
mount -t tmpfs none /sys/bus # a machine without a PCI bus has no directory in it
mkdir -p /sys/bus/pci/devices/0000:3b:00.0
cd /sys/bus/pci/devices/0000:3b:00.0
echo 0x10de > vendor
echo "$1" > device
echo 0x030200 > class
printf '#!/bin/sh\n[ "$1" = -r ] || [ "$1" = nvidia ]\n' > /usr/local/bin/modprobe
chmod 0755 /usr/local/bin/modprobe
