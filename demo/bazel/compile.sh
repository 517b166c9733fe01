#!/usr/bin/env bash
# Fixture: stands for the compile.sh of a bazel -dist.zip and says so. It requires what the real one does (scripts/bootstrap/buildenv.sh: a JDK,
# a C++ compiler, zip, unzip, a TMPDIR), and "compiles" the executable that is beside it.
set -eu
fail() { printf 'ERROR: %s\n' "$1" >&2 && exit 1; }
echo "FIXTURE: this is not bazel's compile.sh"
echo "INFO: TMPDIR=$TMPDIR JAVA_HOME=${JAVA_HOME-} user=$(id -un) interfaces=$(grep -c : /proc/net/dev)"
[ ! -e /srv/compile/hangs ] || sleep 600
[ ! -e /srv/compile/is-slow ] || { echo begun >> /srv/compile/is-slow && sleep 10; }
[ -x "${JAVA_HOME:?}/bin/javac" ] || fail "JDK not found, please set \$JAVA_HOME."
for tool in zip unzip "${CXX:-g++}"; do
    command -v "$tool" > /dev/null || fail "$tool not found"
done
work=$(mktemp -d "$TMPDIR/bazel_XXXXXXXX")
trap 'rm -rf "$work"' EXIT
echo 'int main() { return 0; }' > "$work/main.cc"
"${CXX:-g++}" -o "$work/main" "$work/main.cc"
mkdir -p output
cp fixture-bazel output/bazel
chmod 0755 output/bazel
echo "Build successful! Binary is here: $PWD/output/bazel"
