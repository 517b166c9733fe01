#!/usr/bin/python
"""Find the Hadoop client of a host and everything that libhdfs needs of it; say in sentences what is missing."""

DOCUMENTATION = r"""{
"module": "hadoop_client_info",
"short_description": "Find the Hadoop client, Java and libhdfs of a host",
"description": ["Reads only. What is given is taken; the rest is looked for in C(places) and C(java_places), in their order."],
"options": {
  "hadoop_home": {"description": "Home of the Hadoop client. Empty to look for it", "type": "str", "default": ""},
  "conf_dir": {"description": "Directory with core-site.xml. Empty to look for it", "type": "str", "default": ""},
  "java_home": {"description": "Home of the Java to use. Empty to look for it", "type": "str", "default": ""},
  "java_versions": {"description": "Major versions of Java that fit. Empty for any", "type": "list", "elements": "str", "default": []},
  "libhdfs": {"description": "Path of libhdfs.so. Empty to look for it", "type": "str", "default": ""},
  "libjvm": {"description": "Path of libjvm.so. Empty to look for it", "type": "str", "default": ""},
  "places": {"description": "Where distributions keep Hadoop: distribution, home, hdfs_home, native (a list)", "type": "list", "elements": "dict", "required": true},
  "conf_places": {"description": "Where distributions keep its configuration", "type": "list", "elements": "str", "default": []},
  "java_places": {"description": "Where Java is kept (with wildcards)", "type": "list", "elements": "str", "default": []},
  "linked_home": {"description": "Directory for links if HADOOP_HDFS_HOME has no lib/native/libhdfs.so", "type": "str", "required": true}
}}"""

RETURN = r"""
hadoop: {description: What was found, type: dict, returned: always}
problems: {description: "What is missing, in sentences", type: list, elements: str, returned: always}
"""

import glob
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, hdfs_command, host_system, processes

LIBJVM = ("lib/server/libjvm.so", "jre/lib/amd64/server/libjvm.so", "lib/amd64/server/libjvm.so")
TIMEOUT = 60  # seconds for `hadoop classpath`, which starts a JVM


def first(paths):
    """The first path that exists, wildcards expanded, or None."""
    for pattern in paths:
        for path in sorted(glob.glob(pattern)):
            return path
    return None


def java_major(home):
    return host_system.java_major(host_system.java_version(home))


def find_place(configured_home, places):
    """The first distribution whose home is there, or the wanted home with its distribution's other values."""
    for place in places:
        homes = [configured_home] if configured_home else sorted(glob.glob(place["home"]))
        for home in homes:
            matches = not configured_home or os.path.realpath(configured_home) in [
                os.path.realpath(path) for path in glob.glob(place["home"])
            ]
            if matches and os.path.isdir(home):
                return dict(place, home=home, hdfs_home=first([place.get("hdfs_home") or home]) or home)
    if configured_home and os.path.isdir(configured_home):
        return {"distribution": "other", "home": configured_home, "hdfs_home": configured_home, "native": []}
    return None


def hadoop_script_java(conf_dir):
    """The JAVA_HOME that the cluster's own hadoop-env.sh sets, when it is a plain path."""
    try:
        with open(os.path.join(conf_dir, "hadoop-env.sh")) as handle:
            match = re.search(r"^\s*(?:export\s+)?JAVA_HOME=[\"']?(/[^\"'\s$]+)", handle.read(), re.M)
    except (IOError, OSError):
        return None
    return match.group(1) if match else None


def find_java(configured_home, conf_dir, places, versions):
    """(home, what was there): the wanted one, else the cluster's own, else the first of a version that fits."""
    if configured_home:
        return configured_home, [configured_home]
    candidates = [hadoop_script_java(conf_dir)] if conf_dir else []
    candidates += [path for pattern in places for path in sorted(glob.glob(pattern))]
    homes = [home for home in candidates if home and os.path.exists(os.path.join(home, "bin", "java"))]
    for home in homes:
        if not versions or java_major(home) in versions:
            return home, homes
    return None, homes


def class_path(home, conf_dir, java_home):
    """(class path with every jar spelled out, what went wrong): libhdfs expands no wildcards."""
    launcher = first([os.path.join(home, "bin", "hadoop"), "/usr/bin/hadoop"])
    if launcher is None:
        return "", "%s/bin/hadoop is missing" % home
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "JAVA_HOME": java_home, "HADOOP_CONF_DIR": conf_dir}
    user = processes.unprivileged([launcher] + hdfs_command.code(home, conf_dir, java_home))
    answer = processes.run([launcher, "classpath", "--glob"], TIMEOUT, environment, user)
    if answer.late:
        return "", answer.problem
    output = answer.output
    if answer.status or ".jar" not in output:
        cause = (answer.error or output or "nothing").splitlines()[-1]
        return "", "%s classpath --glob answered: %s" % (launcher, cause)
    lines = [line for line in output.splitlines() if ".jar" in line]
    return ":".join(part for part in lines[-1].split(":") if part), None


def links(hdfs_home, libhdfs, directory):
    """Links that make a Hadoop home with lib/native/libhdfs.so out of one that keeps it elsewhere.

    TensorFlow looks for $HADOOP_HDFS_HOME/lib/native/libhdfs.so first. The distribution's own tree is not ours to
    change, and Hadoop's launchers read HADOOP_HDFS_HOME too, so the new home has everything that the old one has.
    """
    targets = {}
    for level, leave in (("", "lib"), ("lib", "native"), ("lib/native", "libhdfs.so")):
        source = os.path.join(hdfs_home, level) if level else hdfs_home
        for name in sorted(os.listdir(source)) if os.path.isdir(source) else []:
            if name != leave:
                targets[os.path.join(directory, level, name)] = os.path.join(source, name)
    targets[os.path.join(directory, "lib", "native", "libhdfs.so")] = libhdfs
    return targets


def survey(params):
    """What was found, and what is missing."""
    problems = []
    place = find_place(params["hadoop_home"], params["places"])
    if place is None:
        candidates = [params["hadoop_home"]] if params["hadoop_home"] else [place["home"] for place in params["places"]]
        return {}, [
            "A Hadoop client is required, but none is in %s. Install the distribution's client on this host, or set hadoop_client_hadoop_home."
            % ", ".join(candidates)
        ]
    home, hdfs_home = place["home"], place["hdfs_home"]

    conf_places = [params["conf_dir"]] if params["conf_dir"] else params["conf_places"] + [home + "/etc/hadoop"]
    core_site = first([path + "/core-site.xml" for path in conf_places])
    conf_dir = os.path.dirname(core_site) if core_site else ""
    if not core_site:
        problems.append(
            "The cluster's configuration (core-site.xml) is required, but it is not in %s. Deploy the client "
            "configuration to this host, or set hadoop_client_conf_dir." % " or ".join(conf_places)
        )

    java_home, homes = find_java(params["java_home"], conf_dir, params["java_places"], params["java_versions"])
    if java_home is None:
        problems.append(
            "Java %sis required, but %s. Install one that the stack names, or set hadoop_client_java_home."
            % (
                " or ".join(params["java_versions"]) + " " if params["java_versions"] else "",
                "found were " + ", ".join("%s (%s)" % (home, java_major(home) or "unknown version") for home in homes)
                if homes
                else "none is in " + ", ".join(params["java_places"]),
            )
        )
    elif not os.path.exists(os.path.join(java_home, "bin", "java")):
        problems.append(
            "Java is required in %s, but there is no bin/java. Correct hadoop_client_java_home." % java_home
        )
        java_home = None

    native = [hdfs_home + "/lib/native", home + "/lib/native"] + list(place.get("native") or [])
    libhdfs = first([params["libhdfs"]] if params["libhdfs"] else [path + "/libhdfs.so" for path in native])
    if libhdfs is None:
        problems.append(
            "libhdfs.so is required (TensorFlow reads HDFS through it), but it is not in %s. Install the distribution's "
            "libhdfs package, or set hadoop_client_libhdfs." % (params["libhdfs"] or ", ".join(native))
        )
    libjvm = ""
    if java_home:
        candidates = [params["libjvm"]] if params["libjvm"] else [os.path.join(java_home, path) for path in LIBJVM]
        libjvm = first(candidates)
        if libjvm is None:
            problems.append(
                "libjvm.so is required (libhdfs starts a JVM), but it is not in %s. Install a JRE with a server JVM, or set hadoop_client_libjvm."
                % ", ".join(candidates)
            )

    classes = ""
    if java_home and conf_dir:
        classes, problem = class_path(home, conf_dir, java_home)
        if problem:
            problems.append(
                "Hadoop's class path is required, but %s. Make that command work on this host." % problem.rstrip(".")
            )
    home_links = {}
    if libhdfs and not os.path.exists(hdfs_home + "/lib/native/libhdfs.so"):
        home_links = links(hdfs_home, libhdfs, params["linked_home"])
    return {
        "distribution": place["distribution"],
        "home": home,
        "hdfs_home": params["linked_home"] if home_links else hdfs_home,
        "conf_dir": conf_dir,
        "java_home": java_home or "",
        "java_version": java_major(java_home) if java_home else None,
        "libhdfs": libhdfs or "",
        "libjvm": libjvm or "",
        "classpath": classes,
        "links": home_links,
    }, problems


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    hadoop, problems = survey(module.params)
    module.exit_json(changed=False, hadoop=hadoop, problems=problems)


if __name__ == "__main__":
    main()
