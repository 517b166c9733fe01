#!/bin/sh
# bootstrap.sh ARCHIVE DIRECTORY LOG: compile bazel from its -dist.zip, as the white paper does; the result is DIRECTORY/output/bazel.
# A compilation that ended well while nobody waited for it is not repeated; one that was stopped begins again.
set -eu
archive=$1 directory=$2 log=$3
[ ! -e "$directory/.compiled" ] || exit 0
rm -rf "$directory"
mkdir -p "$directory" "$TMPDIR"
cd "$directory"
if ! { unzip -q "$archive" && bash ./compile.sh; } > "$log" 2>&1 < /dev/null || [ ! -x output/bazel ]; then
    tail -n 5 "$log" >&2
    exit 1
fi
touch .compiled
