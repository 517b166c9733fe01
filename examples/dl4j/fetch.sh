#!/bin/sh
# Fetches the jars of jars.yml into jars/: sh fetch.sh, or from a mirror that has them: sh fetch.sh http://mirror01.example.com:8900/files
set -eu
cd "$(dirname "$0")"
mkdir -p jars
awk '$1 ~ /[.]jar:$/ { sub(":$", "", $1); name = $1 } $1 == "file:" { url = $2 } $1 == "sha256:" { print name, url, $2 }' jars.yml |
    while read -r name url sha256; do
        if [ ! -e "jars/$name" ]; then
            [ -z "${1:-}" ] || url=$1/$name
            curl -sSfL --retry 3 --max-time 600 -o "jars/$name.part" "$url" || exit 1
            echo "$sha256  jars/$name.part" | sha256sum -c --quiet || exit 1
            mv "jars/$name.part" "jars/$name"
        fi
    done
echo "$(find jars -name '*.jar' | wc -l) jars are in $PWD/jars"
