#!/bin/sh
# A GPU for the kernel of molecule/upgrade_driver/stand_in_kernel.sh, at each boot: on the PCI bus, and with device nodes when the driver runs.
set -eu
install -m 0755 /srv/demo-cdsw/nvidia-modprobe /usr/local/bin/nvidia-modprobe
install -m 0755 /srv/gpu_in_sysfs.sh /usr/local/sbin/gpu_in_sysfs.sh
gpu_in_sysfs.sh 0x15f8
