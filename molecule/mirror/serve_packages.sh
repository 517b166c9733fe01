#!/bin/sh
# serve_packages.sh: install createrepo_c, and serve the fixtures of NVIDIA's packages on port 8001, which acts as a proxy for
# http://packages.example.com.
set -eu
dpkg --install --force-unsafe-io /srv/programs/*.deb > /srv/programs.log 2>&1 || { cat /srv/programs.log; exit 1; }
mkdir '/srv/packages/http:'
ln -s .. '/srv/packages/http:/packages.example.com' # a request to a proxy has the whole address as its path
systemd-run --quiet --unit packages /usr/bin/python3 -m http.server 8001 --directory /srv/packages
