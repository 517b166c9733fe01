#!/bin/sh
# hold_gpu.sh on|off: a process that has a GPU open.
set -eu
if [ "$1" = off ]; then
    kill "$(cat /run/holder)"
    rm -f /dev/nvidia0 /run/holder
    exit
fi
touch /dev/nvidia0
setsid python3 -c 'import os, time; device = open("/dev/nvidia0"); open("/run/holder", "w").write(str(os.getpid())); time.sleep(600)' > /dev/null 2>&1 &
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ ! -s /run/holder ] || exit 0
    sleep 0.3
done
exit 1
