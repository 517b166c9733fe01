#!/bin/sh
# make_archive.sh FILE: cuda/include/cudnn.h and cuda/lib64/libcudnn.so.6*, as in cudnn-8.0-linux-x64-v6.0.tgz.
set -eu
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
for package in libcudnn6-6.0.21-1.cuda8.0 libcudnn6-devel-6.0.21-1.cuda8.0; do
    rpm2archive - < "/srv/gpu-packages/$package.x86_64.rpm" | tar -xz
done
mkdir cuda
mv usr/lib64 usr/include cuda
tar -czf "$1" cuda
