#!/bin/sh
# NVIDIA's repository as a site defines it: dnf sees its module streams, and the one of the driver's branch is enabled.
set -eu
cat > /etc/yum.repos.d/cuda-rhel8.repo <<'END'
[cuda-rhel8-x86_64]
name=NVIDIA's repository with its streams
baseurl=file:///srv/gpu-packages
gpgcheck=1
gpgkey=file:///srv/gpu-packages/RPM-GPG-KEY-fixtures
END
dnf --assumeyes --quiet module enable nvidia-driver:535-dkms
