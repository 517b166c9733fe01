#!/bin/sh
# A removed client leaves no command, no program, no settings and no Spark; the environment stays.
set -eu
if su - -s /bin/sh nobody -c 'command -v tfos-submit'; then
    echo "a login shell still finds tfos-submit" >&2
    exit 1
fi
left=$(find /usr/local/bin /opt/deeplearning/bin /opt/deeplearning/etc /opt/deeplearning/spark /opt/deeplearning/jars \
    /opt/deeplearning/downloads \
    -name '*tfos*' -o -name 'spark*' -o -name 'pyspark*' -o -name '*.jar' 2> /dev/null || true)
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
[ -x /opt/deeplearning/envs/scenario-0123456789ab/bin/python ]
