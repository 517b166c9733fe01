#!/bin/bash
# published.sh COUNT: so many wheels are published, each with the sha256 of its provenance, and nothing else is there.
set -eu
cd /var/lib/deeplearning-build/published
for place in *; do
    grep -q "\"sha256\": \"$(sha256sum < "$place"/*.whl | cut -d' ' -f1)\"" "$place/provenance.json"
done
[ "$(find . -mindepth 1 -maxdepth 1 | wc -l)" = "$1" ] || { ls -la; exit 1; }
