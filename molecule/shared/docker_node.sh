#!/bin/sh
# docker_node.sh: install Docker's daemon from /srv/docker so that it runs containers. The node has /var/lib/docker on a volume.
set -eu
# The engine mounts the hierarchies read-only, and runc makes a group for each container.
for place in /sys/fs/cgroup /sys/fs/cgroup/*; do
    ! mountpoint --quiet "$place" || mount -o remount,bind,rw "$place"
done
mkdir -p /etc/docker /lib/modules
# Containers share the node's network, or have none: a container has no place for bridges of its own.
printf '{\n  "bridge": "none",\n  "iptables": false,\n  "storage-driver": "overlay2"\n}\n' > /etc/docker/daemon.json
ln -sf /bin/true /usr/sbin/modprobe
dpkg --install --force-unsafe-io --force-confold /srv/docker/*.deb > /srv/docker.log 2>&1 || { cat /srv/docker.log; exit 1; }
systemctl restart docker
