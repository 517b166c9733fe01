#!/bin/bash
# Check that the removal left no package, hold, module or setting, and nothing in an initramfs.
fail() { echo "$*"; exit 1; }
packages=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' '*nvidia*' 'libcuda1' 'linux-headers-*' 2> /dev/null | grep '^.i')
[ -z "$packages" ] || fail "packages: $packages"
[ -z "$(apt-mark showhold)" ] || fail "held: $(apt-mark showhold)"
[ -z "$(find /lib/modules /var/lib/dkms /usr/src -name 'nvidia*' 2> /dev/null)" ] || fail "modules: $(find /lib/modules /var/lib/dkms /usr/src -name 'nvidia*')"
[ -z "$(find /etc/modprobe.d /etc/apt /etc/systemd/system /opt -name '*deeplearning*')" ] || fail "settings: $(find /etc /opt -name '*deeplearning*')"
for image in /boot/initrd.img-*; do
    if lsinitramfs "$image" | grep -q -e nvidia -e deeplearning; then fail "$image still has them"; fi
done
