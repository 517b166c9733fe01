#!/bin/sh
# CDSW from 1.6 on has a Docker with NVIDIA's runtime. One daemon is in this node, so it gets that runtime by another name.
set -eu
install -m 0755 /srv/demo-containers/nvidia-container-runtime /srv/cdsw/nvidia-container-runtime
install -m 0755 /srv/demo-containers/nvidia-container-runtime-hook /usr/bin/nvidia-container-runtime-hook
python3 -c "
import json
settings = json.load(open('/etc/docker/daemon.json'))
settings['runtimes'] = {'nvidia-of-cdsw': {'path': '/srv/cdsw/nvidia-container-runtime'}}
json.dump(settings, open('/etc/docker/daemon.json', 'w'))"
systemctl reload docker
