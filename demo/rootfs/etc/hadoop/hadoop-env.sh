# Read by the launchers.
HADOOP_HOME=/opt/hadoop
HADOOP_CONF_DIR=${HADOOP_CONF_DIR:-/etc/hadoop/conf}
java=$(readlink -f /usr/bin/java)
JAVA_HOME=${JAVA_HOME:-${java%/bin/java}}
export HADOOP_HOME HADOOP_CONF_DIR JAVA_HOME
