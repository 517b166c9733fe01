#!/bin/sh
# platform_python.sh: let Ansible's dnf module work on the stand-in el7. RHEL 7 has yum, which Python 2.7 imports; el7 has dnf on Python 3.
# The module starts it from Python 2.7 and passes its arguments as text, but Python 3 requires bytes.
set -eu
[ -x /usr/bin/python2.7 ] || exit 0
mkdir -p /usr/libexec
cat > /usr/libexec/platform-python << 'END'
#!/bin/sh
[ "$1" = -- ] || exec /usr/bin/python3 "$@"
sed 's/^smuggled_args = /&b/' | exec /usr/bin/python3 -
END
chmod 0755 /usr/libexec/platform-python
