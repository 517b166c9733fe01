#!/bin/sh
# serve_packages.sh: createrepo_c, and the fixtures of NVIDIA's packages on port 8001.
set -eu
dpkg --install --force-unsafe-io /srv/programs/*.deb > /srv/programs.log 2>&1 || { cat /srv/programs.log; exit 1; }
systemd-run --quiet --unit packages /usr/bin/python3 -m http.server 8001 --directory /srv/packages
