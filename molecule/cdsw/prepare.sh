#!/bin/sh
# prepare.sh KIND RELEASE: a host of CDSW that runs, with two GPUs that it does not use.
set -eu
mkdir -p /srv/cdsw
# Only root of a container may put a file under /proc, where the driver shows its version.
mount -t tmpfs none /proc/driver
mkdir /proc/driver/nvidia
echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  418.67  Sat Apr  6 03:07:24 CDT 2019' > /proc/driver/nvidia/version
echo "$2" > /srv/cdsw/release
echo 2 > /srv/cdsw/gpus
install -m 0755 /srv/demo-cdsw/cdsw /usr/bin/cdsw
if [ "$1" = rpm ]; then
    mkdir -p /etc/cdsw/config
    sed -i "s/^MASTER_IP=.*/MASTER_IP=\"$(hostname -I | cut -d' ' -f1)\"/" /srv/demo-cdsw/cdsw.conf # the master is this node
    install -m 0640 /srv/demo-cdsw/cdsw.conf /etc/cdsw/config/cdsw.conf
    for driver in 418.67 440.64; do
        mkdir -p "/var/lib/nvidia-docker/volumes/nvidia_driver/$driver/lib64"
        touch "/var/lib/nvidia-docker/volumes/nvidia_driver/$driver/lib64/libcuda.so.$driver"
    done
    cdsw restart
else
    mkdir -p "/opt/cloudera/parcels/CDSW-$2.p1.47677668" /var/lib/cdsw
    ln -s "CDSW-$2.p1.47677668" /opt/cloudera/parcels/CDSW
    echo NVIDIA_GPU_ENABLE=false > /srv/cdsw/running.conf # what Cloudera Manager gave its agents
fi
