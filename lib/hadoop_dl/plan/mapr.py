"""MapR in the plan: its file system is a mounted directory for TensorFlow, and what these playbooks do not do there is refused.

Written from public pages; no MapR was met (docs/reference/hadoop.md).
"""

from collections.abc import Iterator

from hadoop_dl.plan.components import concerns
from hadoop_dl.plan.model import Host

PAGE = "(docs/reference/hadoop.md#mapr)"


def problems(host: Host) -> Iterator[str]:
    """What a host of MapR lacks, and inputs that cannot be met there."""
    hadoop, inputs = host.known.hadoop, host.variables
    if hadoop is None or hadoop.distribution != "mapr":
        return
    if concerns("environment", host) and host.known.mapr_mount is None:
        yield (
            "MapR's file system must be mounted at /mapr/CLUSTER, because TensorFlow does not read maprfs://, but no NFS or FUSE mount is there. "
            f"Mount it; CLUSTER is the first name in /opt/mapr/conf/mapr-clusters.conf {PAGE}."
        )
    if concerns("tensorflowonspark", host) and not inputs.get("spark_home"):
        yield (
            "jobs require the site's Spark, because a Spark of PyPI has no client of MapR, but spark_home is not set. "
            f"Set spark_home for edge_nodes {PAGE}."
        )
    if inputs.get("upgrade_drain") is True:
        yield f"upgrade_drain requires Hadoop's own services, but MapR's Warden runs those of the host. Remove it, and drain by MapR's means {PAGE}."
