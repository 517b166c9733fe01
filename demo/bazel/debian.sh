# Fixture: compile.sh of the -dist.zip that hadoop_dl_dev.demo.bazel_dist makes reads this first. bazel's own -dist.zip has what is named here in itself;
# this one takes it from Debian 12's packages and from the tree, with the settings of debian/rules in Debian's source package bazel-bootstrap.
export PROTOC=/usr/bin/protoc GRPC_JAVA_PLUGIN=/usr/bin/grpc_java_plugin JAVA_VERSION=17
export BAZEL_JAVAC_OPTS="-J-Xmx4096m --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED"
DIST_BOOTSTRAP_ARGS="--define=distribution=debian --distinct_host_configuration=false"
for place in com_google_protobuf=tools/distributions/debian/protobuf io_bazel_skydoc=mock_repos/bazel_skydoc; do
    DIST_BOOTSTRAP_ARGS="$DIST_BOOTSTRAP_ARGS --override_repository=${place%%=*}=$PWD/${place#*=}"
done
for name in remote_java_tools_linux bazel_skylib rules_pkg rules_cc rules_java rules_proto platforms; do
    DIST_BOOTSTRAP_ARGS="$DIST_BOOTSTRAP_ARGS --override_repository=$name=$PWD/mock_repos/$name"
done
