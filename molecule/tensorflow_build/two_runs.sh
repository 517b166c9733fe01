#!/bin/bash
# two_runs.sh INVENTORY PLAYBOOK: a run that is killed when its build has begun, then two at once for the same wheel, then two for another.
set -eu
run() { ansible-playbook --inventory "$1" "$2" --extra-vars "{\"tensorflow_build_flags\": [\"--define=runs=$3\"]}"; }
{ run "$1" "$2" killed & } > /dev/null 2>&1
killed=$!
container=tensorflow-build-el7
for _ in $(seq 100); do
    [ -z "$(docker exec $container find /var/lib/deeplearning-build/builds -newer /srv/kill.py -name status.json)" ] || break
    sleep 0.1
done
pkill -KILL --parent "$killed"
kill -KILL "$killed" 2> /dev/null || true
run "$1" "$2" killed
run "$1" "$2" twice &
run "$1" "$2" twice
wait $!
