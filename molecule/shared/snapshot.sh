#!/bin/bash
# snapshot.sh FILE: what a GPU role could change on a host: files with their digests, packages, boot entries, contents of each initramfs.
# Not /etc/hosts: the engine writes it again when a node is rebooted.
{
    places=(/etc /boot/loader /usr/bin /usr/include /usr/lib64 /usr/lib/modules /usr/src /usr/local /usr/lib/systemd/system /opt/deeplearning /var/lib/dkms)
    find "${places[@]}" -type f ! -path /etc/ld.so.cache ! -path /etc/hosts ! -path '/etc/*.new' -print0 2> /dev/null | sort -z | xargs -0 sha256sum
    find "${places[@]}" -type l -printf 'link %p %l\n' 2> /dev/null | sort
    find /usr/local /opt -type d | sort
    if [ -e /etc/redhat-release ]; then rpm -qa; else dpkg-query --show; fi | sort
    for image in /boot/initramfs-*; do
        [ -f "$image" ] || continue
        echo "$image"
        lsinitrd "$image" | grep -o -E '[^ ]*(nouveau|modprobe\.d)[^ ]*$' || true
    done
} > "$1"
