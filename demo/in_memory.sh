#!/bin/sh
# in_memory.sh DIRECTORY COMMAND...: runs the command with a file system in memory on DIRECTORY, in a mount namespace of
# its own (unshare --mount), so that nothing stays mounted however it ends.
set -eu
directory=$1
shift
mount -t tmpfs -o mode=0755 node-image "$directory"
exec "$@"
