#!/bin/sh
# platform_python.sh: RHEL 7 has yum, and Python 2.7 imports it. The stand-in el7 has dnf on Python 3, which Ansible's dnf module starts
# from 2.7 with its arguments as text where Python 3 needs bytes.
set -eu
[ -x /usr/bin/python2.7 ] || exit 0
mkdir -p /usr/libexec
cat > /usr/libexec/platform-python << 'END'
#!/bin/sh
[ "$1" = -- ] || exec /usr/bin/python3 "$@"
sed 's/^smuggled_args = /&b/' | exec /usr/bin/python3 -
END
chmod 0755 /usr/libexec/platform-python
