"""An installed environment as a user of the host runs it: which one it is, and what its programs need. Python 2.7 and 3.

Part of the programs tfos-submit and deeplearning.
"""

import glob
import grp
import os
import pwd

from . import environment_names, environment_tree, processes

ROOT = "/opt/deeplearning"
DEFAULT = "DEEPLEARNING_ENVIRONMENT"  # a variable by which a user chooses another environment than the active one
TIMEOUT = 60  # seconds for the shell that reads Hadoop's variables
HADOOP_NAMES = ("JAVA_HOME", "HADOOP_HDFS_HOME", "HADOOP_CONF_DIR", "LD_LIBRARY_PATH", "CLASSPATH")
HIDDEN = [("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("CUDA_VISIBLE_DEVICES", "")]


class NotReady(Exception):
    """Something is missing; the text has what is required, what was found, and what to do."""


def environment_path(root, name):
    """The path of the active (or the named) environment: a program keeps it when `current` is switched meanwhile.

    It is a link to one of the environment's trees (NAME.1, NAME.2): the name is the same on all hosts, the tree is not.
    """
    link = os.path.join(root, "envs", name) if name else os.path.join(root, "current")
    if name:
        name = named(root, name)
    elif os.path.islink(link):
        name = os.path.basename(os.readlink(link))
    path = os.path.join(root, "envs", environment_names.name_of(name)) if name else link
    installed = ", ".join(installed_names(root)) or "none"
    if not os.path.isdir(path):
        raise NotReady(
            "an installed environment is required at %s, but there is none (installed: %s). Install one with "
            "ansible-playbook site.yml, or name another with --stack." % (link, installed)
        )
    if not is_sealed(path):
        raise NotReady(
            "the environment %s was never finished: it has no seal. Run ansible-playbook site.yml again, or name "
            "another with --stack (installed: %s)." % (path, installed)
        )
    if not os.access(os.path.join(path, "bin", "python"), os.X_OK):
        raise NotReady("%s/bin/python is required, but it does not start. Run ansible-playbook site.yml again." % path)
    return path


def named(root, text):
    """The environment that a user means by its name, its stack, or the beginning of its stack (tf2.15)."""
    if os.path.isdir(os.path.join(root, "envs", text)):
        return text
    fitting = [
        name for name in installed_names(root) if (environment_names.stack_of(name) + "-").startswith(text + "-")
    ]
    active = active_name(root)
    if len(fitting) > 1 and active not in fitting:
        raise NotReady(
            "--stack %s must mean one environment, but fits %s. Name one of them." % (text, " and ".join(fitting))
        )
    return active if active in fitting else (fitting or [text])[0]


def active_name(root):
    """The name of the environment that `current` points to; None without one."""
    link = os.path.join(root, "current")
    return environment_names.name_of(os.path.basename(os.readlink(link))) if os.path.islink(link) else None


def is_sealed(path):
    return os.path.exists(os.path.join(path, environment_tree.STATE, "sealed.json"))


def installed_names(root):
    """Of the environments that are complete."""
    trees = [os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(root, "envs", "*", "bin"))]
    names = sorted(set(environment_names.name_of(tree) for tree in trees))
    return [name for name in names if is_sealed(os.path.join(root, "envs", name))]


def check_own(paths, reason):
    """Refuse what others may change, on the way to one of these paths, too: this user's programs would run it."""
    uid, groups = os.geteuid(), []
    try:
        user = pwd.getpwuid(uid)
        group = grp.getgrgid(user.pw_gid)
        if group.gr_name == user.pw_name and not set(group.gr_mem).difference([user.pw_name]):
            groups.append(user.pw_gid)  # a group of this user alone, as RHEL makes them with the umask 002
    except KeyError:
        pass  # an account without an entry, as in containers
    foreign_file = processes.foreign(paths, (0, uid), groups)
    if foreign_file:
        status = os.stat(foreign_file[0])
        raise NotReady(
            "only you may be able to write to %s, because %s, but its owner is %d and its mode %04o. Use a directory of your own: make a new one, "
            "or chmod go-w." % (foreign_file[0], reason, status.st_uid, status.st_mode & 0o7777)
        )


def client_file(root, environment, name):
    """A setting of Spark or Hadoop that belongs to the environment; if nothing is beside it, the host's only one."""
    path = os.path.join(environment, environment_tree.STATE, "client", name)
    return path if os.path.exists(path) else os.path.join(root, "etc", name)


def hadoop_environment(path):
    """The variables that the role hadoop_client wrote down, as the shell reads them."""
    if not os.path.exists(path):
        raise NotReady(
            "%s is required (it has the paths of Hadoop and Java), but is missing. Write it with "
            "ansible-playbook site.yml --tags always,hadoop_client." % path
        )
    command = ["/bin/sh", "-c", '. "$1" && exec /usr/bin/env', "sh", path]
    output = processes.run(command, TIMEOUT, {"PATH": "/usr/bin:/bin"}).output
    variables = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    missing_names = [name for name in HADOOP_NAMES if not variables.get(name)]
    if missing_names:
        raise NotReady(
            "%s must set %s, but does not. Write it again with ansible-playbook site.yml -e apply=all."
            % (path, ", ".join(missing_names))
        )
    if not os.path.exists(os.path.join(variables["JAVA_HOME"], "bin", "java")):
        raise NotReady(
            "Java is required at %s (JAVA_HOME in %s), but is missing. Install it, or run ansible-playbook site.yml "
            "after setting hadoop_client_java_home." % (variables["JAVA_HOME"], path)
        )
    return variables


def program_variables(inherited, environment, hadoop):
    """The variables of a program in the environment. hadoop: those of Hadoop's client; empty without one."""
    variables = dict(inherited)
    variables.update((name, hadoop[name]) for name in HADOOP_NAMES if name in hadoop)
    if hadoop:
        libraries = (hadoop["LD_LIBRARY_PATH"], inherited.get("LD_LIBRARY_PATH"))
        variables["LD_LIBRARY_PATH"] = ":".join(part for part in libraries if part)
        variables["YARN_CONF_DIR"] = hadoop["HADOOP_CONF_DIR"]
    variables["PATH"] = os.pathsep.join([os.path.join(environment, "bin"), inherited.get("PATH", "/usr/bin:/bin")])
    for name in ("PYTHONHOME", "PYTHONPATH"):  # of whatever Python the user has active; it is not this one
        variables.pop(name, None)
    return variables
