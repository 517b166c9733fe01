#!/usr/bin/env bash
# make_wheel.sh DIRECTORY PART...: the wheel of these files, as an action of bazel. PYTHON_BIN_PATH comes from configure (--action_env).
set -e
house=$PWD/$1
shift
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
for part in "$@"; do
    place=$directory/tensorflow/${part#*tensorflow/}
    mkdir -p "$(dirname "$place")"
    cp -L "$part" "$place"
done
mv "$directory/tensorflow/tools/pip_package/setup.py" "$directory/setup.py"
rm -rf "$directory/tensorflow/tools"
cd "$directory"
"$PYTHON_BIN_PATH" setup.py bdist_wheel > /dev/null
mkdir -p "$house"
cp dist/*.whl "$house"
