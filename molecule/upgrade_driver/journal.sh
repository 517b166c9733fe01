#!/bin/sh
# journal.sh WORD: the word, the driver and the kernel that run now, as one line of /srv/journal.
set -eu
driver=$(sed -n 's/.*Kernel Module  *\([0-9.]*\) .*/\1/p' /proc/driver/nvidia/version)
echo "$1 $driver $(uname -r)" >> /srv/journal
