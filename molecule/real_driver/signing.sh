#!/bin/sh
# The real dkms, with a small module: install --force does not sign again what is built. remove, then install, does (roles/nvidia_driver/tasks/verify_module.yml).
# gcc-12 comes with the headers of Debian 12's kernels, and is compiler enough for the package dkms: there may be no gcc.
set -eu
kernel=$(uname -r)
here=$(mktemp -d)
mkdir /usr/src/toy-1.0
cat > /usr/src/toy-1.0/dkms.conf << 'END'
PACKAGE_NAME=toy
PACKAGE_VERSION=1.0
BUILT_MODULE_NAME[0]=toy
DEST_MODULE_LOCATION[0]=/extra
MAKE[0]="gcc-12 -c -o toy.ko toy.c"
CLEAN=true
END
echo 'const char license[] __attribute__((section(".modinfo"))) = "license=GPL";' > /usr/src/toy-1.0/toy.c

toy() { # ACTION KEY [OPTION]
    cp "$here/$2.conf" /etc/dkms/framework.conf.d/toy.conf
    dkms "$1" -m toy -v 1.0 -k "$kernel" ${3:-} > "$here/log" 2>&1 || { cat "$here/log"; exit 1; }
}

signer() { # EXPECTED: by the key of this name
    found=$(modinfo -F signer "$(find "/lib/modules/$kernel" -name 'toy.ko*')")
    [ "$found" = "$1" ] || { echo "toy.ko must be signed by $1, but is by $found"; exit 1; }
}

for key in one two; do
    openssl req -new -x509 -newkey rsa:2048 -nodes -subj "/CN=$key" -outform DER -keyout "$here/$key.key" -out "$here/$key.der" 2> /dev/null
    printf 'mok_signing_key=%s\nmok_certificate=%s\n' "$here/$key.key" "$here/$key.der" > "$here/$key.conf"
done
toy install one --force
signer one
toy install two --force
signer one
toy remove two
toy install two --force
signer two
toy remove two
rm -r /usr/src/toy-1.0 "$here" /etc/dkms/framework.conf.d/toy.conf
