#!/bin/sh
# prepare.sh: compilers and libraries, a user who builds, a web server.
set -eu
dpkg --install --force-unsafe-io /srv/compiler/*.deb > /dev/null
rm -r /srv/compiler
useradd --create-home builder
cp -r /srv/project /home/builder/project
chown -R builder: /home/builder
systemd-run --quiet --unit bazel-server /usr/bin/python3 -m http.server 8000 --directory /srv/site
