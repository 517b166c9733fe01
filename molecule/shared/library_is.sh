#!/bin/bash
# library_is.sh SONAME VERSION|none: check that the linker finds this version under this name.
set -eu
path=$(ldconfig -p | awk -v name="$1" '$1 == name {print $NF; exit}')
found=none
[ -z "$path" ] || found=$(readlink -f "$path" | sed 's/.*[.]so[.]//')
[ "$found" = "$2" ] || { echo "$1 must be $2, but is $found (${path:-not in the linker cache})"; exit 1; }
