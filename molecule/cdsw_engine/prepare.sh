#!/bin/sh
# prepare.sh: the base image, and a web server with the apt repository, which has no wheels.
set -eu
docker load --quiet --input /srv/engine-base/engine.tar
systemd-run --quiet --unit packages /usr/bin/python3 -m http.server 8001 --directory /srv/engine-base
