#!/bin/sh
# deeplearning: these lines, then a zip archive with the program (unzip -l shows its files). The first Python that exists runs it.
# -E and -s: no variable of the caller and no directory of a user adds modules.
case $0 in /*) program=$0 ;; *) program=$PWD/$0 ;; esac
for python in /usr/bin/python3 /usr/libexec/platform-python /usr/bin/python2.7 /usr/bin/python; do
    [ -x "$python" ] && exec "$python" -E -s "$program" "$@"
done
echo "deeplearning needs Python 2.7 or 3, and none is in /usr/bin. Install it with the package manager." >&2
exit 3
