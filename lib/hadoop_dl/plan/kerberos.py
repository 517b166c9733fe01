"""A cluster with Kerberos in the plan: what a host lacks for it, and what is not done there without a login."""

from collections.abc import Iterator, Sequence
from statistics import median_low

from hadoop_dl.data.compat import load
from hadoop_dl.data.stacks import Stack
from hadoop_dl.plan.components import concerns
from hadoop_dl.plan.model import Host
from hadoop_dl.resolver.rules.keras_and_io import kafka_logins

LOGIN = "hadoop_login"  # hosts of this need log in before the first change (playbooks/preflight.yml)
CLOCKSKEW = 300  # seconds, if krb5.conf sets none: Kerberos refuses tickets of a host whose clock is further away
PACKAGES = {"kinit": "krb5-workstation", "klist": "krb5-workstation", "curl": "curl"}


def is_secure(host: Host) -> bool:
    return host.known.kerberos is not None and host.known.kerberos.secure


def by_site(host: Host) -> bool:
    return host.variables.get("hadoop_login") == "none"


def logs_in(host: Host) -> bool:
    """Whether this project logs in on the host."""
    return is_secure(host) and not by_site(host) and bool(host.variables.get("hadoop_principal"))


def problems(host: Host) -> Iterator[str]:
    """Parts of Kerberos that the host lacks."""
    kerberos = host.known.kerberos
    if kerberos is None or not kerberos.secure:
        return
    edge = concerns("tensorflowonspark", host)
    if kerberos.realm is None:
        yield (
            "core-site.xml requires Kerberos, but /etc/krb5.conf is missing or has no default_realm. TensorFlow needs it also where jobs only have tokens (Cannot locate default "
            "realm). Copy the cluster's file there."
        )
    uses = {"kinit": edge or logs_in(host), "klist": edge, "curl": kerberos.web and (edge or logs_in(host))}
    packages = sorted({PACKAGES[name] for name in kerberos.missing if uses.get(name)})
    if packages:
        programs = ", ".join(name for name in kerberos.missing if uses.get(name))
        yield f"core-site.xml requires Kerberos, but the host has no {programs}. Install {' and '.join(packages)} there."
    if edge and not by_site(host) and not host.variables.get("hadoop_principal"):
        yield (
            "core-site.xml requires Kerberos, but hadoop_principal and hadoop_keytab are not set, so nothing can be written to HDFS. Set them for "
            "edge_nodes, or set hadoop_login: none to run the steps in HDFS yourself (docs/operate/kerberos.md)."
        )


def clock_problems(hosts: Sequence[Host]) -> Iterator[str]:
    """Hosts of a secure cluster whose clocks are too far from those of most others; the controller's own clock decides nothing."""
    read = {
        host.name: kerberos
        for host in hosts
        if (kerberos := host.known.kerberos) and kerberos.secure and kerberos.clock and kerberos.received
    }
    ahead = {name: (kerberos.clock or 0) - (kerberos.received or 0) for name, kerberos in read.items()}
    middle = median_low(ahead.values()) if ahead else 0
    for name, kerberos in read.items():
        apart, most = ahead[name] - middle, kerberos.clockskew or CLOCKSKEW
        if abs(apart) > most:
            yield (
                f"{name}: Kerberos requires clocks that differ by {most} s at most, but this host's is {abs(apart)} s "
                f"{'ahead of' if apart > 0 else 'behind'} those of the others. Correct it (chronyc tracking shows what it follows)."
            )


def warnings(host: Host, stack: Stack) -> Iterator[str]:
    """What TensorFlow cannot read there, and the checks that are skipped without a login."""
    kafka = kafka_logins(load(), stack.data) if stack.data.get("kafka") else ""
    if kafka:
        yield (
            f"the cluster requires Kerberos, but {kafka}. If Kafka requires it too, read topics with Spark's Kafka source, and feed "
            "TensorFlow with them (docs/operate/kerberos.md)."
        )
    if logs_in(host):
        return
    web = host.known.kerberos is not None and host.known.kerberos.web
    yield (
        "the cluster requires Kerberos and no login is set here, so the suite skips its questions to HDFS"
        f"{', and old environments stay because YARN cannot be asked' if web else ''}. Set hadoop_principal and hadoop_keytab to change that."
    )
