"""make demo KERBEROS=1: a KDC on master1, and HDFS and YARN that accept nobody without a ticket or a token.

What is not as on a site: the setuid program with which a NodeManager starts containers as the user who submitted is in no registry. So the NodeManagers
run as analyst, who submits all jobs; as another user they would not collect the logs of the containers (owner of each file). On a machine with the devices
controller of cgroup v1 they have LinuxContainerExecutor with a stand-in of that program (demo/hadoop/container-executor), else Hadoop's default executor.
DataNodes serve unprivileged ports without TLS (ignore.secure.ports.for.testing). The ResourceManager of Hadoop 3.3 keeps a core busy as soon as it has
Kerberos (YARN-11178).
"""

import secrets
from pathlib import Path

from ansible.module_utils.hadoop_dl_host import host_yarn

from hadoop_dl_dev.demo import images, nodes
from hadoop_dl_dev.demo.cluster import KEYTAB, REALM, Cluster
from hadoop_dl_dev.demo.shell import DemoError

CONF = "/etc/hadoop/conf"
KEYTABS = "/etc/security/keytabs"
NODEMANAGER = "/etc/systemd/system/yarn-nodemanager.service.d"
RESOURCEMANAGER = "/etc/systemd/system/yarn-resourcemanager.service.d"
# Its thread that spins gets a hundredth of a core, in steps of 10 ms, because every other thread waits for it at a safepoint. It appears some seconds
# after the start; so does every restart's.
CALM = """\
[Service]
ExecStartPost=+/bin/sh -c 'for second in $$(seq 60); do for task in /proc/$MAINPID/task/*; do \
    read -r name < $$task/comm && [ "$$name" = DelegationToken ] && \
    exec chrt --deadline --sched-runtime 100000 --sched-deadline 10000000 --sched-period 10000000 --pid 0 $${task##*/}; done; sleep 1; done'
"""
USER_KEYTAB = "/home/analyst/analyst.keytab"
KRB5_CONF = f"""\
[libdefaults]
    default_realm = {REALM}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
    ticket_lifetime = 24h
[realms]
    {REALM} = {{
        kdc = master1:88
    }}
"""
KDC_CONF = f"""\
[realms]
    {REALM} = {{
        max_life = 24h 0m 0s
        max_renewable_life = 7d 0h 0m 0s
    }}
"""
# Java 9 and later close what Hadoop reads of the realm by reflection.
SECURE_ENV = """\
HADOOP_OPTS="$HADOOP_OPTS --add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
export HADOOP_NATIVE=/opt/hadoop/lib/secure
"""


def of_daemon(name: str, keytab: str) -> dict[str, str]:
    return {f"{name}.principal": f"{keytab}/_HOST@{REALM}", f"{name}.keytab": f"{KEYTABS}/{keytab}.keytab"}


LINUX_EXECUTOR = "yarn.nodemanager.linux-container-executor"
EXECUTOR = {
    "yarn.nodemanager.container-executor.class": "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor",
    f"{LINUX_EXECUTOR}.path": "/opt/hadoop/bin/container-executor",
    f"{LINUX_EXECUTOR}.group": "hadoop",
}
EXECUTOR_CONFIG = "/opt/hadoop/etc/hadoop/container-executor.cfg"
EXECUTOR_SETTINGS = """\
yarn.nodemanager.linux-container-executor.group=hadoop
banned.users=hdfs,yarn
min.user.id=1000#Prevent other super-users
"""
PROGRAM = EXECUTOR[f"{LINUX_EXECUTOR}.path"]
SUDOERS = f"analyst ALL=(root) NOPASSWD: {PROGRAM} --checksetup, {PROGRAM} --module-gpu *\n"


def isolates() -> bool:
    """Whether nodes on this machine have the controller that denies a container devices."""
    return host_yarn.devices_mount(Path("/proc/mounts").read_text(encoding="utf-8")) is not None


SETTINGS = {
    "core-site.xml": {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.simple.anonymous.allowed": "false",
        "hadoop.http.authentication.signature.secret.file": "/etc/hadoop/http-auth.secret",
        "hadoop.http.authentication.kerberos.principal": f"HTTP/_HOST@{REALM}",
        # Each daemon reads the files of all others: one keytab for their web addresses.
        "hadoop.http.authentication.kerberos.keytab": f"{KEYTABS}/http.keytab",
        "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
    },
    "hdfs-site.xml": {
        "dfs.namenode.kerberos.principal": f"hdfs/_HOST@{REALM}",
        "dfs.datanode.kerberos.principal": f"hdfs/_HOST@{REALM}",
        "dfs.namenode.keytab.file": f"{KEYTABS}/hdfs.keytab",
        "dfs.datanode.keytab.file": f"{KEYTABS}/hdfs.keytab",
        "dfs.web.authentication.kerberos.principal": f"HTTP/_HOST@{REALM}",
        "dfs.web.authentication.kerberos.keytab": f"{KEYTABS}/http.keytab",
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": "authentication",
        "ignore.secure.ports.for.testing": "true",
    },
    "yarn-site.xml": {
        **of_daemon("yarn.resourcemanager", "yarn"),
        **of_daemon("yarn.nodemanager", "yarn"),
        **(EXECUTOR if isolates() else {}),
    },
}


def prepare(cluster: Cluster) -> None:
    """Before the services start: the KDC, and on each host its keytabs and settings. Root on master1 gets HDFS's own ticket."""
    for host in cluster.hosts:
        write(cluster, host, "/etc/krb5.conf", KRB5_CONF, "root:root", "0644")
    start_kdc(cluster)
    secret = secrets.token_hex(32)
    for host in cluster.hosts:
        if host != "mirror1":
            settle(cluster, host, secret)
    master = cluster.container("master1")
    nodes.execute(master, "kinit", "-k", "-t", f"{KEYTABS}/hdfs.keytab", f"hdfs/master1@{REALM}")


def start_kdc(cluster: Cluster) -> None:
    master = cluster.container("master1")
    if not nodes.succeeds(master, "test", "-f", "/var/lib/krb5kdc/principal"):
        write(cluster, "master1", "/etc/krb5kdc/kdc.conf", KDC_CONF, "root:root", "0644")
        nodes.execute(master, "kdb5_util", "-r", REALM, "create", "-s", "-P", secrets.token_hex(16))
    nodes.execute(master, "systemctl", "enable", "--quiet", "--now", "krb5-kdc")


def settings(file: str) -> str:
    """The node's file of Hadoop's settings, and Kerberos in it."""
    source = (images.DATA / "rootfs/etc/hadoop/conf" / file).read_text(encoding="utf-8")
    lines = "".join(
        f"  <property><name>{name}</name><value>{value}</value></property>\n" for name, value in SETTINGS[file].items()
    )
    return source.replace("</configuration>", f"{lines}</configuration>")


def settle(cluster: Cluster, host: str, secret: str) -> None:
    """Keytabs that their owners alone can read, and Hadoop's settings."""
    container = cluster.container(host)
    if nodes.succeeds(container, "test", "-f", "/etc/hadoop/secure-env.sh"):
        return  # by an earlier run
    nodes.execute(container, "mkdir", "-p", KEYTABS)
    owner = "analyst" if host in cluster.data_hosts else "yarn"
    keytab(cluster, host, f"{KEYTABS}/hdfs.keytab", f"hdfs/{host}@{REALM}", "hdfs:hadoop")
    keytab(cluster, host, f"{KEYTABS}/yarn.keytab", f"yarn/{host}@{REALM}", f"{owner}:hadoop")
    keytab(cluster, host, f"{KEYTABS}/http.keytab", f"HTTP/{host}@{REALM}", "root:hadoop", "0440")
    keytab(cluster, host, KEYTAB, f"deeplearning@{REALM}", "root:root")
    if host == "edge1":
        keytab(cluster, host, USER_KEYTAB, f"analyst@{REALM}", "analyst:analyst")
    for file in SETTINGS:
        write(cluster, host, f"{CONF}/{file}", settings(file), "root:root", "0644")
    if host in cluster.data_hosts:
        nodes.execute(container, "mkdir", "-p", NODEMANAGER)
        write(cluster, host, f"{NODEMANAGER}/user.conf", "[Service]\nUser=analyst\n", "root:root", "0644")
        nodes.execute(container, "chown", "-R", "analyst:hadoop", "/var/lib/hadoop/yarn", "/var/log/hadoop/containers")
        nodes.execute(container, "systemctl", "daemon-reload")
        if isolates():
            install_executor(cluster, host)
    if host == "master1" and images.hadoop(cluster.image).startswith("3.3."):  # of 3.1.1 none spins
        nodes.execute(container, "mkdir", "-p", RESOURCEMANAGER)
        write(cluster, host, f"{RESOURCEMANAGER}/calm.conf", CALM, "root:root", "0644")
        nodes.execute(container, "systemctl", "daemon-reload")
    write(cluster, host, "/etc/hadoop/http-auth.secret", secret, "root:hadoop", "0440")
    write(cluster, host, "/etc/hadoop/secure-env.sh", SECURE_ENV, "root:root", "0644")


def install_executor(cluster: Cluster, host: str) -> None:
    nodes.execute(cluster.container(host), "mkdir", "-p", EXECUTOR_CONFIG.rpartition("/")[0])
    write(cluster, host, EXECUTOR_CONFIG, EXECUTOR_SETTINGS, "root:hadoop", "0400")
    program = (images.DATA / "hadoop/container-executor").read_text(encoding="utf-8")
    write(cluster, host, PROGRAM, program, "root:hadoop", "0755")
    write(cluster, host, "/etc/sudoers.d/container-executor", SUDOERS, "root:root", "0440")


def keytab(cluster: Cluster, host: str, path: str, principal: str, owner: str, mode: str = "0400") -> None:
    """The keys come from the KDC over this machine, and are nowhere else."""
    master, passing = cluster.container("master1"), "/root/passing.keytab"
    for query in (f"addprinc -randkey {principal}", f"ktadd -norandkey -k {passing} {principal}"):
        # It ends with 0 in any case. A principal of several hosts, or of an interrupted run, is there already.
        output = nodes.execute(master, "sh", "-c", f"kadmin.local -q '{query}' 2>&1")
        if " while " in output and "already exists" not in output:
            raise DemoError(f"kadmin.local -q '{query}' must work, but said: {output}")
    content = nodes.execute(master, "base64", passing)
    nodes.execute(master, "rm", passing)
    command = f"umask 077; base64 -d > {path}; chown {owner} {path}; chmod {mode} {path}"
    nodes.execute(cluster.container(host), "sh", "-c", command, stdin=content)


def write(cluster: Cluster, host: str, path: str, content: str, owner: str, mode: str) -> None:
    command = f"umask 077; cat > {path}; chown {owner} {path}; chmod {mode} {path}"
    nodes.execute(cluster.container(host), "sh", "-c", command, stdin=content)


def log_in(cluster: Cluster) -> None:
    """analyst on the edge node gets a ticket, as a user does before submitting."""
    nodes.execute(cluster.container("edge1"), "kinit", "-k", "-t", USER_KEYTAB, f"analyst@{REALM}", user="analyst")
