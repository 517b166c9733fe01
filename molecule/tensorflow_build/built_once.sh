#!/bin/bash
# built_once.sh: bazel was started once for each wheel that two runs asked for.
for name in killed twice; do
    logs=$(grep -l -- "--define=runs=$name" /var/lib/deeplearning-build/builds/*/build.log)
    count=$(grep -c -- "--define=runs=$name" "$logs")
    [ "$count" = 1 ] || { echo "bazel was started $count times for $name"; exit 1; }
done
