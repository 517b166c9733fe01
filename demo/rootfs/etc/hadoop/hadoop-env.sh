# Read by the launchers.
HADOOP_HOME=/opt/hadoop
HADOOP_CONF_DIR=${HADOOP_CONF_DIR:-/etc/hadoop/conf}
java=$(readlink -f /usr/bin/java)
JAVA_HOME=${JAVA_HOME:-${java%/bin/java}}
# Short-lived commands and eight daemons on two cores: a JVM that starts quickly matters more than its peak speed.
HADOOP_OPTS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${HADOOP_OPTS:-}"
# A cluster with Kerberos: settings for Java, and libhadoop.so (lib/hadoop_dl_dev/demo/kerberos.py).
[ ! -f /etc/hadoop/secure-env.sh ] || . /etc/hadoop/secure-env.sh
export HADOOP_HOME HADOOP_CONF_DIR JAVA_HOME
