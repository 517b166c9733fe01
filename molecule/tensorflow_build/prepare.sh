#!/bin/sh
# prepare.sh: a compiler with git and Python's headers, and a server of bazel and of the sources.
set -eu
dpkg --install --force-unsafe-io /srv/compiler/*.deb > /dev/null
cp /srv/bazel/bazel-*-linux-x86_64 /srv/tensorflow
systemd-run --quiet --unit site-server /usr/bin/python3 -m http.server 8001 --directory /srv/tensorflow
