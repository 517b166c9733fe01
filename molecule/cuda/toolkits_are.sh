#!/bin/bash
# toolkits_are.sh VERSION...: exactly these toolkits are there, and the link points to the last one.
set -eu
found=$(cd /usr/local && ls -d cuda-* | sort -V | tr '\n' ' ')
wanted=$(printf 'cuda-%s ' "$@")
[ "$found" = "$wanted" ] || { echo "the toolkits must be $wanted, but are $found"; exit 1; }
[ "$(readlink /usr/local/cuda)" = "cuda-${!#}" ] || { echo "/usr/local/cuda points to $(readlink /usr/local/cuda)"; exit 1; }
