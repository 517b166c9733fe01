"""MapR's file system as a directory: /mapr/CLUSTER, mounted by NFS or FUSE. Python 2.7 and 3, standard library only.

https://docs.datafabric.hpe.com/61/MapROverview/c_direct_NFS.html, https://docs.datafabric.hpe.com/61/AdministratorGuide/MapRfusePOSIXClient.html
"""

CLUSTERS = (
    "/opt/mapr/conf/mapr-clusters.conf"  # a line for each cluster: its name, then its servers; the first is the default
)


def directory(text):
    """/mapr/CLUSTER, or None. text: reads a file."""
    names = (text(CLUSTERS) or "").split()[:1]
    return "/mapr/" + names[0] if names else None


def mount(text):
    """The directory if a file system is mounted there. Only /proc/mounts is read: a dead mount would not answer."""
    place = directory(text)
    mounts = [line.split() for line in (text("/proc/mounts") or "").splitlines()]
    kinds = [fields[2] for fields in mounts if len(fields) > 2 and fields[1] in ("/mapr", place)]
    return place if kinds and kinds[-1].startswith(("nfs", "fuse")) else None
