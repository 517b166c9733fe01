#!/bin/sh
# Fetches the jars of jars.sha256 into jars/: sh fetch.sh, or from a mirror that has them: sh fetch.sh http://mirror01.example.com:8900/files
set -eu
cd "$(dirname "$0")"
mkdir -p jars
while read -r sha256 path; do
    name=${path##*/}
    if [ ! -e "jars/$name" ]; then
        url=${MAVEN_CENTRAL_URL:-https://repo1.maven.org/maven2}/$path
        [ -z "${1:-}" ] || url=$1/$name
        curl -sSfL --retry 3 --max-time 600 -o "jars/$name.part" "$url"
        echo "$sha256  jars/$name.part" | sha256sum -c --quiet
        mv "jars/$name.part" "jars/$name"
    fi
done < jars.sha256
echo "$(find jars -name '*.jar' | wc -l) jars are in $PWD/jars"
