#!/bin/sh
# driver_tree.sh ROOT VERSION: the files of NVIDIA's driver packages, as far as roles, dracut, dkms and gpu-check look at them.
set -eu
root=$1 version=$2
here=$(dirname "$0")
mkdir -p "$root/usr/bin" "$root/usr/lib64" "$root/usr/lib/systemd/system" "$root/usr/lib/modprobe.d" "$root/usr/lib/udev/rules.d" \
    "$root/usr/lib/dracut/dracut.conf.d" "$root/usr/lib/firmware/nvidia/$version" "$root/usr/include/nvidia"
sed "s/@VERSION@/$version/" "$here/nvidia-smi" > "$root/usr/bin/nvidia-smi"
library() { # library NAME SONAME SYMBOL=ANSWER...
    name=$1
    python3 "$here/elf.py" library "$root/usr/lib64/$name.so.$version" "$name.so.$2" "$3" ${4:+"$4"}
    ln -s "$name.so.$version" "$root/usr/lib64/$name.so.$2"
}
library libcuda 1 cuInit=100
library libnvidia-ml 1 nvmlInit_v2=9 nvmlShutdown=0
library libnvidia-fbc 1 NvFBCCreateInstance=0
library libnvidia-cfg 1 nvCfgGetPciDevices=0
library libEGL_nvidia 0 __egl_Main=0
ln -s libcuda.so.1 "$root/usr/lib64/libcuda.so"
ln -s libnvidia-ml.so.1 "$root/usr/lib64/libnvidia-ml.so"
for program in nvidia-persistenced nv-fabricmanager; do
    printf '#!/bin/sh\n# %s %s (stand-in)\nexec sleep infinity\n' $program "$version" > "$root/usr/bin/$program"
done
for program in nvidia-xconfig nvidia-bug-report.sh; do
    printf '#!/bin/sh\n# %s %s (stand-in)\nexit 0\n' $program "$version" > "$root/usr/bin/$program"
done
cat > "$root/usr/bin/nvidia-modprobe" <<END
#!/bin/sh
# nvidia-modprobe $version (stand-in): where a driver runs, the device nodes as files; that of unified memory only with -u, as the real one.
set -eu
[ -e /proc/driver/nvidia/version ] || exit 0
nodes='/dev/nvidiactl /dev/nvidia0'
[ "\${1:-}" != -u ] || nodes="\$nodes /dev/nvidia-uvm"
for node in \$nodes; do
    : >> "\$node"
    chmod 0666 "\$node"
done
END
unit() { # unit NAME PROGRAM
    printf '[Unit]\nDescription=%s (stand-in)\n[Service]\nExecStart=/usr/bin/%s\n[Install]\nWantedBy=multi-user.target\n' "$2" "$2" \
        > "$root/usr/lib/systemd/system/$1.service"
}
unit nvidia-persistenced nvidia-persistenced
unit nvidia-fabricmanager nv-fabricmanager
printf 'blacklist nouveau\nsoftdep nvidia post: nvidia-uvm\n' > "$root/usr/lib/modprobe.d/nvidia.conf"
echo 'softdep nvidia post: nvidia-uvm' > "$root/usr/lib/modprobe.d/nvidia-uvm.conf"
echo 'omit_drivers+=" nvidia nvidia-drm nvidia-modeset nvidia-uvm "' > "$root/usr/lib/dracut/dracut.conf.d/99-nvidia.conf"
echo 'ACTION=="add|bind", KERNEL=="nvidia", RUN+="/usr/bin/nvidia-modprobe"' > "$root/usr/lib/udev/rules.d/60-nvidia.rules"
echo stand-in > "$root/usr/lib/firmware/nvidia/$version/gsp_tu10x.bin"
echo '/* stand-in */' > "$root/usr/include/nvidia/nvEncodeAPI.h"
source_of() { # source_of DKMS-NAME LICENSE
    mkdir -p "$root/usr/src/$1-$version"
    printf 'PACKAGE_NAME="%s"\nPACKAGE_VERSION="%s"\nAUTOINSTALL="yes"\nBUILT_MODULE_NAME[0]="nvidia"\nMODULE_LICENSE="%s"\n' "$1" "$version" "$2" \
        > "$root/usr/src/$1-$version/dkms.conf"
}
source_of nvidia NVIDIA
source_of nvidia-open "Dual MIT/GPL"
chmod 0755 "$root"/usr/bin/*
