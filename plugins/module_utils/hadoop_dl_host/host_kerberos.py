"""What a host has of Kerberos. Python 2.7 and 3, standard library only; a part of host_reader.

krb5.conf(5): default_realm is in the section libdefaults; `include` and `includedir` name other files. RHEL's own file has it as a comment.
"""

import os
import re
import time

from . import kerberos_login, yarn_cluster

KRB5_CONF = "/etc/krb5.conf"
PLACES = ("/usr/bin", "/bin", "/usr/local/bin")
PROGRAMS = ("kinit", "klist", "curl")
DEEPEST, MOST = 4, 100  # levels of files that include others, and files of one


def read(system, directories):
    """Whether Hadoop's configuration asks for Kerberos, its web interfaces as well, and what of the client is here."""
    sites = [yarn_cluster.hadoop_configuration(system.at(directory)) for directory in sorted(directories)]
    skew = setting(system, [KRB5_CONF], "clockskew") or ""
    return {
        "secure": any(kerberos_login.is_secure(values) for values in sites),
        "web": any(values.get(kerberos_login.WEB, "simple").lower() == "kerberos" for values in sites),
        "realm": setting(system, [KRB5_CONF], "default_realm"),
        "missing": [name for name in PROGRAMS if not any(system.exists("%s/%s" % (place, name)) for place in PLACES)],
        "clock": int(time.time()),
        "clockskew": int(skew) if re.match(r"\d{1,5}$", skew) else None,
    }


def setting(system, paths, name, level=0):
    """The value in the first of these files, or of those that they include, that has it; None: not set."""
    for path in paths[:MOST]:
        for line in (system.text(path) or "").splitlines():
            own = re.match(r"\s*%s\s*=\s*([^\s#;]+)" % name, line)
            include = re.match(r"\s*(include|includedir)\s+(/\S+)", line)
            if own:
                return own.group(1)
            if include and level < DEEPEST:
                value = setting(system, included(system, *include.groups()), name, level + 1)
                if value:
                    return value
    return None


def included(system, kind, path):
    """The files that krb5 reads of a directory: names of letters, digits, - and _, or that end with .conf."""
    if kind == "include":
        return [path]
    return [
        name
        for name in system.glob(path.rstrip("/") + "/*")
        if re.match(r"([\w-]+|[^.].*\.conf)$", os.path.basename(name))
    ]
