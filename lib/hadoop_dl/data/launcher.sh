#!/bin/sh
# PROGRAM: these lines, then a zip archive with the program (unzip -l shows its files). The first Python that exists runs it:
# RHEL 7 has 2.7, RHEL 8 keeps one in libexec, engines of CDSW have theirs in /usr/local.
# -E and -s: no variable of the caller and no directory of a user adds modules.
case $0 in /*) program=$0 ;; *) program=$PWD/$0 ;; esac
for python in /usr/bin/python3 /usr/libexec/platform-python /usr/bin/python2.7 /usr/bin/python /usr/local/bin/python3 /usr/local/bin/python2.7; do
    [ -x "$python" ] && exec "$python" -E -s "$program" "$@"
done
echo "PROGRAM requires Python 3 or 2.7, but none was found in /usr/bin and /usr/local/bin. Install one." >&2
exit 3
