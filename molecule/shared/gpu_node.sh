#!/bin/sh
# gpu_node.sh [KERNEL KERNEL]: rpm and dnf as RHEL has them, and two kernels; the first runs, the second is the default.
set -eu
mkdir -p /etc/yum.repos.d /etc/pki/rpm-gpg
packages="stand-in-base python3-dnf-plugin-versionlock"
if [ $# -gt 0 ]; then
    printf '#!/bin/sh\n[ "$*" != -r ] || exec cat /etc/stand-in-kernel\nexec /bin/uname "$@"\n' > /usr/local/bin/uname
    chmod 0755 /usr/local/bin/uname
    echo "$1.x86_64" > /etc/stand-in-kernel
    packages="$packages kernel-$1 kernel-$2"
fi
rpm --import /srv/gpu-packages/RPM-GPG-KEY-fixtures
# shellcheck disable=SC2086 # one word for each package
dnf --assumeyes --quiet --repofrompath=gpu,file:///srv/gpu-packages --repo=gpu install $packages
rpm --erase --allmatches gpg-pubkey # the role installs the key
# A lock of the site's own, which no role may touch.
rpm --query --queryformat '%{NAME}-0:%{VERSION}-%{RELEASE}.*\n' stand-in-base >> /etc/dnf/plugins/versionlock.list
