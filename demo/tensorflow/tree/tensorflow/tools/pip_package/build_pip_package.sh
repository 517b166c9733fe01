#!/usr/bin/env bash
# build_pip_package.sh DIRECTORY: the wheel, from what bazel built; as TensorFlow's own. Runs at the top of the sources.
set -e
mkdir -p "$1"
destination=$(cd "$1" && pwd)
source tools/python_bin_path.sh
runfiles=bazel-bin/tensorflow/tools/pip_package/build_pip_package.runfiles/org_tensorflow
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cp -rL "$runfiles/tensorflow" "$directory/tensorflow"
cp "$runfiles/tensorflow/tools/pip_package/setup.py" "$directory/setup.py"
rm -rf "$directory/tensorflow/tools"
cd "$directory"
"$PYTHON_BIN_PATH" setup.py bdist_wheel > /dev/null
cp dist/*.whl "$destination"
echo "Output wheel file is in: $destination"
