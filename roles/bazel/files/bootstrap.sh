#!/bin/sh
# bootstrap.sh ARCHIVE DIRECTORY LOG: compile bazel from its -dist.zip, as the white paper does; the result is DIRECTORY/output/bazel.
# A compilation that ended well while nobody waited for it is not repeated; one that was stopped begins again.
set -eu
archive=$1 directory=$2 log=$3
[ ! -e "$directory/.compiled" ] || exit 0
# A killed bazel leaves hundreds of megabytes in TMPDIR, so each version has a directory of its own there.
export TMPDIR="$TMPDIR/${directory##*/}"
rm -rf "$directory" "$TMPDIR"
mkdir -p "$directory" "$TMPDIR"
cd "$directory"
if ! { unzip -q "$archive" && bash ./compile.sh; } > "$log" 2>&1 < /dev/null || [ ! -x output/bazel ]; then
    # bazel's progress has the codes of a terminal, which a message cannot show.
    tail -n 50 "$log" | sed "s/\r//g; s/$(printf '\033')\[[0-9;]*[A-Za-z]//g; /^ *\$/d" | tail -n 5 >&2
    exit 1
fi
rm -rf "$TMPDIR"
touch .compiled
