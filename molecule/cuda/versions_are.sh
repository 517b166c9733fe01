#!/bin/bash
# versions_are.sh CUDNN NCCL present|absent: what the linker finds, and whether CUDA 8.0 is there.
set -eu
fail() { echo "$*"; exit 1; }
[ "$(readlink -f "$(ldconfig -p | sed -n 's|.*libcudnn.so.6 .* => ||p')" | sed 's/.*so[.]//')" = "$1" ] || fail "cuDNN: $(ldconfig -p | grep cudnn)"
[ "$(readlink -f "$(ldconfig -p | sed -n 's|.*libnccl.so.2 .* => ||p')" | sed 's/.*so[.]//')" = "$2" ] || fail "NCCL: $(ldconfig -p | grep nccl)"
case $3 in
    absent) [ ! -e /usr/local/cuda-8.0 ] || fail "CUDA 8.0 is there" ;;
    present) [ -x /usr/local/cuda-8.0/bin/nvcc ] || fail "CUDA 8.0 is gone" ;;
esac
[ "$(readlink /usr/local/cuda)" = cuda-12.2 ] || fail "the link leads to $(readlink /usr/local/cuda)"
