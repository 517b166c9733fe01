#!/bin/bash
# make_archive.sh FILE LIBRARIES PACKAGE...: an archive as NVIDIA's, with top/include and top/LIBRARIES (lib64, or lib as in
# newer ones), from fixture packages. The same packages give the same bytes.
set -eu
file=$1 libraries=$2
shift 2
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
for package; do
    rpm2archive - < "/srv/gpu-packages/$package.x86_64.rpm" | tar -xz
done
mkdir top
mv usr/lib64 "top/$libraries"
mv usr/include top
tar --sort=name --mtime=@0 --owner=0 --group=0 -c top | gzip -n > "$file"
