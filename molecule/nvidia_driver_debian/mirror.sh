#!/bin/sh
# A mirror in /srv/mirror with Debian's own signature, made from what apt has read.
set -eu
mkdir -p /srv/mirror/dists/bookworm
cp /var/lib/apt/lists/*_dists_bookworm_InRelease /srv/mirror/dists/bookworm/InRelease
