#!/bin/sh
# Runs once, without a network, inside a node image while it is made: users, directories, libhdfs.so, settings.
set -eu

if [ -f /build/os-release ]; then
    rm -f /etc/os-release # a link to Debian's
    cp /build/os-release /etc/os-release
fi

groupadd --system hadoop
groupadd --system kafka
useradd --system --gid hadoop --home-dir /var/lib/hadoop --shell /usr/sbin/nologin hdfs
useradd --system --gid hadoop --home-dir /var/lib/hadoop --shell /usr/sbin/nologin yarn
useradd --system --gid kafka --home-dir /var/lib/kafka --shell /usr/sbin/nologin kafka
useradd --create-home --shell /bin/bash deploy  # Ansible's account
useradd --create-home --shell /bin/bash analyst # submits jobs
echo 'deploy ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/deploy
chmod 0440 /etc/sudoers.d/deploy

if command -v rpmbuild > /dev/null; then
    # What every RHEL has in its rpm database: the release, and the shell that other packages ask for.
    . /etc/os-release
    rpmbuild -bb --quiet --define "_topdir /build/rpm" --define "major ${VERSION_ID%%.*}" --define "release_version $VERSION_ID" /build/redhat-release.spec
    rpm --install /build/rpm/RPMS/noarch/*.rpm
fi
for settings in /etc/python3.*; do cp /build/sitecustomize.py "$settings"; done
mkdir /var/cache/ansible-bytecode
mkdir -p /etc/yum.repos.d # where RHEL and roles look for repositories

for directory in hdfs:/var/lib/hadoop/hdfs yarn:/var/lib/hadoop/yarn/local yarn:/var/log/hadoop/containers kafka:/var/lib/kafka hdfs:/var/lib/hadoop/tmp; do
    mkdir -p "${directory#*:}"
    chown "${directory%%:*}:" "${directory#*:}"
done
chmod 0775 /var/lib/hadoop/tmp
chown hdfs:hadoop /var/lib/hadoop/tmp

# libhdfs for this system's Java: TensorFlow reads hdfs:// through it.
java=$(readlink -f /usr/bin/java)
home=${java%/bin/java}
mkdir -p /opt/hadoop/lib/native
cd /build/libhdfs
# shellcheck disable=SC2046 # one word for each file
tcc -shared -w -D_GNU_SOURCE -I. -Iinclude -Ios/posix -I/usr/include/android -I/usr/include/android/nativehelper \
    $(find . -name '*.c') -o /opt/hadoop/lib/native/libhdfs.so -L"$(dirname "$(find "$home" -name libjvm.so -path '*/server/*')")" -ljvm -lpthread
# tcc does not say that the stack holds no code, without which the C library of Debian 13 loads no library.
if command -v patchelf > /dev/null; then patchelf --clear-execstack /opt/hadoop/lib/native/libhdfs.so; fi
# shellcheck disable=SC2046
apt-get -qq purge --auto-remove $(cat /build/purge) > /dev/null

chmod 0755 /usr/bin/hadoop /usr/sbin/node-init
ln -s hadoop /usr/bin/hdfs
ln -s hadoop /usr/bin/yarn
mkdir -p /opt/hadoop/bin
for name in hadoop hdfs yarn; do ln -s "/usr/bin/$name" "/opt/hadoop/bin/$name"; done

systemctl disable krb5-kdc krb5-admin-server > /dev/null 2>&1 # their packages enable them; only a cluster with Kerberos has a KDC
rm -f /etc/krb5.conf # of Debian's own realm; scripts/demo --kerberos writes the cluster's
rm -f /etc/ssh/ssh_host_*                        # every node makes its own
rm -f /etc/machine-id /var/lib/dbus/machine-id
# Password prompts and their like: each watcher takes an inotify instance, and 25 nodes use up the kernel's 128.
# tmp.mount: /tmp is on the disk in RHEL, but in memory in Debian 13.
systemctl mask tmp.mount systemd-ask-password-console.path systemd-ask-password-wall.path systemd-firstboot.service systemd-udevd.service systemd-resolved.service dev-hugepages.mount sys-fs-fuse-connections.mount systemd-networkd.service > /dev/null 2>&1
systemctl set-default multi-user.target > /dev/null 2>&1
