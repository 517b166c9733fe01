#!/bin/sh
# serve_packages.sh: createrepo_c, and the fixtures of NVIDIA's packages on port 8001, of a proxy alone: as http://packages.example.com.
set -eu
dpkg --install --force-unsafe-io /srv/programs/*.deb > /srv/programs.log 2>&1 || { cat /srv/programs.log; exit 1; }
mkdir '/srv/packages/http:'
ln -s .. '/srv/packages/http:/packages.example.com' # the path of what a proxy is asked for
systemd-run --quiet --unit packages /usr/bin/python3 -m http.server 8001 --directory /srv/packages
