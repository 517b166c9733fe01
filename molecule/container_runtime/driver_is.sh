#!/bin/sh
# driver_is.sh VERSION: this driver is installed, and runs.
set -eu
rm -f /usr/lib64/libcuda.so.* /usr/lib64/libnvidia-ml.so.*
mkdir -p /usr/lib64
touch "/usr/lib64/libcuda.so.$1" "/usr/lib64/libnvidia-ml.so.$1"
echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $1  Sat Apr  6 03:07:24 CDT 2019" > /proc/driver/nvidia/version
