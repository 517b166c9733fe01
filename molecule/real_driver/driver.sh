#!/bin/sh
# NVIDIA's driver of Debian's non-free section, and the newest kernel for clouds; a container's own uname would print the machine's kernel.
set -eu
export DEBIAN_FRONTEND=noninteractive
sed -i 's/ main$/ main contrib non-free non-free-firmware/' /etc/apt/sources.list
apt-get -qq update
kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: linux-image-//p' | head -n 1)
printf '#!/bin/sh\n[ "$*" != -r ] || exec echo %s\nexec /bin/uname "$@"\n' "$kernel" > /usr/local/bin/uname
chmod 0755 /usr/local/bin/uname
apt-get install -y -qq --no-install-recommends "linux-image-$kernel" "linux-headers-$kernel" initramfs-tools > /dev/null
apt-cache madison nvidia-kernel-dkms | sed -n '1s/.*| *\([0-9.]*\)-.*|.*/\1/p' > /etc/stand-in-driver-version
apt-get install -y -qq --no-install-recommends nvidia-kernel-dkms nvidia-kernel-support nvidia-smi libcuda1 libnvidia-ml1 > /srv/apt.log 2>&1 ||
    { tail -n 50 /srv/apt.log; exit 1; }
printf 'blacklist nouveau\n' > /etc/modprobe.d/site-nouveau.conf
update-initramfs -u -k "$kernel" > /dev/null
