#!/bin/sh
# site.sh SYSTEM: what a site has before the first installation, and finds again after the removal.
set -eu
printf 'export SITE=1\n' > /etc/profile.d/site.sh
printf '/opt/site/lib\n' > /etc/ld.so.conf.d/site.conf
mkdir -p /etc/modprobe.d /etc/hadoop/conf /etc/systemd/system/nvidia-persistenced.service.d /opt/site-cuda
printf 'options nvidia NVreg_EnableGpuFirmware=0\n' > /etc/modprobe.d/site-nvidia.conf
printf '[Service]\nNice=5\n' > /etc/systemd/system/nvidia-persistenced.service.d/site.conf
ln -s /opt/site-cuda /usr/local/cuda # a toolkit of the site's own
cat > /etc/hadoop/conf/core-site.xml << 'END'
<configuration><property><name>fs.defaultFS</name><value>file:///</value></property></configuration>
END
# Directories that packages of every RHEL own (filesystem, systemd, dracut, linux-firmware, kmod).
mkdir -p /usr/lib/dracut/dracut.conf.d /usr/lib/firmware/nvidia /usr/lib/modprobe.d /usr/lib/systemd/system /usr/src/kernels
# NVIDIA's repository as a site defines it, disabled, and packages of NVIDIA's that the site installed.
cat > /etc/yum.repos.d/cuda-rhel.repo << 'END'
[cuda-rhel]
name=NVIDIA's, as the site has it
baseurl=file:///srv/gpu-packages
enabled=0
gpgcheck=1
END
rpm --import /srv/gpu-packages/RPM-GPG-KEY-fixtures
if [ "$1" = el7 ]; then
    dnf --assumeyes --quiet --enablerepo=cuda-rhel install libcudnn6 # the site's own, with the key that rpm trusts
    mkdir -p /opt/deeplearning
    echo "Ask operations before you touch this." > /opt/deeplearning/README.site
else
    dnf --assumeyes --quiet --enablerepo=cuda-rhel install cuda-toolkit-8-0
    rm /usr/local/cuda
    ln -s cuda-8.0 /usr/local/cuda
    rpm --erase --allmatches gpg-pubkey
    grubby --update-kernel=ALL --args=modprobe.blacklist=nouveau
fi
