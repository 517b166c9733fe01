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
if [ -x /usr/bin/python2.7 ]; then
    # RHEL 7 has yum, and Python 2.7 imports it. This stand-in has dnf on Python 3, which Ansible's dnf module starts from 2.7 with its
    # arguments as text where Python 3 needs bytes.
    mkdir -p /usr/libexec
    cat > /usr/libexec/platform-python << 'END'
#!/bin/sh
[ "$1" = -- ] || exec /usr/bin/python3 "$@"
sed 's/^smuggled_args = /&b/' | exec /usr/bin/python3 -
END
    chmod 0755 /usr/libexec/platform-python
fi
rpm --import /srv/gpu-packages/RPM-GPG-KEY-fixtures
# shellcheck disable=SC2086 # one word for each package
dnf --assumeyes --quiet --repofrompath=gpu,file:///srv/gpu-packages --repo=gpu install $packages
rpm --erase --allmatches gpg-pubkey # the role brings the key
# A lock of the site's own, which no role may touch.
rpm --query --queryformat '%{NAME}-0:%{VERSION}-%{RELEASE}.*\n' stand-in-base >> /etc/dnf/plugins/versionlock.list
