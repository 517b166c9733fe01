#!/bin/sh
# A modprobe whose driver is the files that the real one shows: /proc/driver/nvidia/version, device nodes, what nvidia-smi answers.
# While /srv/module-stays exists, the module does not leave the kernel. At each boot the kernel of the default entry runs, and its module is loaded.
set -eu
mount -t tmpfs none /proc/driver
cat > /usr/local/sbin/stand-in-modprobe <<'END'
#!/bin/sh
set -eu
if [ "$1" = -r ]; then
    [ "$2" != nouveau ] || exit 0
    [ ! -e /srv/module-stays ] || { echo "modprobe: FATAL: Module nvidia is in use." >&2; exit 1; }
    rm -rf /proc/driver/nvidia /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm /etc/nvidia-smi-stand-in.json
    exit 0
fi
version=$(modinfo -k "$(uname -r)" -F version nvidia)
mkdir -p /proc/driver/nvidia
echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $version  Thu Aug 17 19:53:00 UTC 2023" > /proc/driver/nvidia/version
for node in /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm; do # files: no driver stands behind the numbers of devices
    : > "$node"
    chmod 0666 "$node"
done
printf '{"driver": "%s", "gpus": [{"uuid": "GPU-0", "bus_id": "00000000:3B:00.0", "name": "Tesla P100-PCIE-16GB"}]}' "$version" > /etc/nvidia-smi-stand-in.json
END
chmod 0755 /usr/local/sbin/stand-in-modprobe
cp /usr/local/sbin/stand-in-modprobe /usr/local/bin/modprobe

cat > /usr/local/sbin/stand-in-boot <<'END'
#!/bin/sh
set -eu
sh /usr/local/sbin/gpu_in_sysfs.sh 0x15f8
cp /usr/local/sbin/stand-in-modprobe /usr/local/bin/modprobe
mount -t tmpfs none /proc/driver
basename "$(grubby --default-kernel)" | sed 's/^vmlinuz-//' > /etc/stand-in-kernel
modprobe nvidia
END
chmod 0755 /usr/local/sbin/stand-in-boot
cat > /etc/systemd/system/stand-in-boot.service <<'END'
[Unit]
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/stand-in-boot
[Install]
WantedBy=sysinit.target
END
systemctl enable --quiet stand-in-boot
