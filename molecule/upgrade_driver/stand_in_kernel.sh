#!/bin/sh
# A kernel as far as files show it: the loaded modules (nouveau), /proc/driver/nvidia/version, device nodes, what nvidia-smi answers.
# A container has no /proc/modules of its own, so every Python of the node reads /srv/modules in its place. modprobe's calls and boots are in
# /srv/kernel.log. While /srv/nouveau-stays or /srv/module-stays exists, that module does not leave.
# At each boot the kernel of the default entry runs; nouveau is loaded unless modprobe.d forbids it, and then the driver's module.
set -eu
for python in /usr/lib/python2.7 /usr/lib/python3.*; do
    [ -d "$python" ] || continue
    place=/usr/local/lib/${python##*/}/dist-packages
    mkdir -p "$place"
    cat > "$place/stand_in_proc.py" <<'END'
import io
import sys

builtins = sys.modules.get("builtins") or sys.modules["__builtin__"]


def redirected(real):
    return lambda path, *args, **kwargs: real("/srv/modules" if path == "/proc/modules" else path, *args, **kwargs)


builtins.open, io.open = redirected(builtins.open), redirected(io.open)
END
    echo 'import stand_in_proc' > "$place/stand_in_proc.pth"
done

cat > /usr/local/sbin/stand-in-modprobe <<'END'
#!/bin/sh
set -eu
echo "modprobe $*" >> /srv/kernel.log
loaded() { # loaded MODULE yes|no
    lines=$(grep -v "^$1 " /srv/modules || true)
    [ "$2" = no ] || lines="$1 2494464 0 - Live 0x0000000000000000
$lines"
    printf '%s\n' "$lines" > /srv/modules
}
busy() {
    echo "modprobe: FATAL: Module $1 is in use." >&2
    exit 1
}
case "$1 ${2:-}" in
"-r nouveau")
    [ ! -e /srv/nouveau-stays ] || busy nouveau
    loaded nouveau no
    ;;
"-r "*)
    [ ! -e /srv/module-stays ] || busy nvidia
    rm -rf /proc/driver/nvidia /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm /etc/nvidia-smi-stand-in.json
    ;;
"nouveau ") loaded nouveau yes ;;
*)
    ! grep -q '^nouveau ' /srv/modules || { echo "modprobe: ERROR: could not insert 'nvidia': No such device" >&2; exit 1; }
    version=$(modinfo -k "$(uname -r)" -F version nvidia)
    mkdir -p /proc/driver/nvidia
    echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $version  Thu Aug 17 19:53:00 UTC 2023" > /proc/driver/nvidia/version
    printf '{"driver": "%s", "gpus": [{"uuid": "GPU-0", "bus_id": "00000000:3B:00.0", "name": "Tesla P100-PCIE-16GB"}]}' "$version" \
        > /etc/nvidia-smi-stand-in.json
    nvidia-modprobe # as NVIDIA's udev rule does: no device of unified memory
    ;;
esac
END
chmod 0755 /usr/local/sbin/stand-in-modprobe

cat > /usr/local/sbin/stand-in-boot <<'END'
#!/bin/sh
set -eu
echo boot >> /srv/kernel.log
sh /usr/local/sbin/gpu_in_sysfs.sh 0x15f8
cp /usr/local/sbin/stand-in-modprobe /usr/local/bin/modprobe
mount -t tmpfs none /proc/driver
: > /srv/modules
basename "$(grubby --default-kernel)" | sed 's/^vmlinuz-//' > /etc/stand-in-kernel
grep -rqs '^blacklist nouveau' /etc/modprobe.d || modprobe nouveau
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

cp /usr/local/sbin/stand-in-modprobe /usr/local/bin/modprobe
mount -t tmpfs none /proc/driver
: > /srv/modules
modprobe nouveau
: > /srv/kernel.log
