"""deeplearning venv: a user's directory of packages on top of an environment, which stays as it is.

The directory has its own Python and an empty site-packages; a .pth file adds the environment's packages behind it. Its pip.conf
gives pip the versions of all of them, so pip refuses what needs others, and says why.
"""

import json
import os
import re
import shutil

from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host import own_packages, processes
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady

from deeplearning_command import options
from deeplearning_command.options import OK, Refused, say

LIMIT = 300  # seconds for making an empty directory of packages
CONFIGURATION = """\
# By deeplearning venv. Addresses of package indexes are those of your own pip.conf and of /etc/pip.conf.
[global]
disable-pip-version-check = true
%s[install]
constraint = %s
"""
OF_PYTHON_2 = """\
no-python-version-warning = true
use-feature = 2020-resolver
"""  # without it pip 20.3 ignores a constraint that is in the way, and prints nothing
PIP = """\
#!/bin/sh
exec %s %s "$@"
"""


def main(arguments):
    parser = options.parser(
        "venv",
        "[--stack NAME] DIR",
        "Make a directory for packages of your own, on top of an environment: its packages are there, too, and none of them is\n"
        "replaced. pip refuses a package that needs another version of one of them. Packages come from the index of your\n"
        "pip.conf, or of the site's /etc/pip.conf, else from PyPI.",
        [
            "deeplearning venv ~/my",
            "~/my/bin/pip install pandas",
            "deeplearning run --venv ~/my train.py",
            "tfos-submit --venv ~/my --executors 2 train.py     the executors get the packages for this job only",
        ],
    )
    parser.add_argument("--stack", metavar="NAME", help="another environment than the default (deeplearning list)")
    parser.add_argument(
        "directory", metavar="DIR", help="a new or an empty directory, on a file system that runs programs"
    )
    args = parser.parse_args(arguments)
    environment = options.chosen(args.root, args.stack)
    directory = os.path.abspath(os.path.expanduser(args.directory))
    check(directory)
    existed = os.path.isdir(directory)
    try:
        create(directory, environment)
    except BaseException as error:
        shutil.rmtree(directory, ignore_errors=True)
        if existed:
            os.mkdir(directory)
        if not isinstance(error, (IOError, OSError)):
            raise
        raise NotReady("%s must be writable and have room, but the system answers: %s." % (directory, error))
    say("%s is ready, on top of %s. Next:" % (directory, os.path.basename(environment)))
    say("  %s/bin/pip install PACKAGE" % directory)
    say("  deeplearning run --venv %s SCRIPT" % directory)
    return OK


def check(directory):
    if re.search(r"\s", directory):
        raise Refused(
            "a path without blanks is required (pip and #! lines cannot have one), but this is %r." % directory
        )
    if os.path.lexists(directory) and (not os.path.isdir(directory) or os.listdir(directory)):
        raise NotReady("a new or an empty directory is required, but %s is in use. Name another." % directory)
    parent = directory
    while not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise NotReady("%s must be yours to write to, but is not. Name a directory in your home." % parent)


def create(directory, environment):
    """Everything but the record comes first: without it the directory is not used."""
    if os.path.exists(os.path.join(environment, "pyvenv.cfg")):
        run([interpreter(environment), "-m", "venv", "--without-pip", directory])
    else:
        copy_virtualenv(environment, directory)
    python, below = os.path.join(directory, "bin", "python"), packages.site_packages(environment)
    write(
        os.path.join(packages.site_packages(directory), own_packages.BEHIND),
        "import site; site.addsitedir(%r)\n" % below,
    )
    lines = sorted(entry.replace(" ", "==", 1) + "\n" for entry in packages.installed(environment))
    constraints = os.path.join(directory, "constraints.txt")
    write(constraints, "# The packages of %s, which stay as they are.\n%s" % (environment, "".join(lines)))
    more = OF_PYTHON_2 if os.path.basename(os.path.dirname(below)) == "python2.7" else ""
    write(os.path.join(directory, "pip.conf"), CONFIGURATION % (more, constraints))
    pip = os.path.join(directory, "bin", "pip")
    write(pip, PIP % (python, os.path.join(environment, "bin", "pip")))
    os.chmod(pip, 0o755)  # noqa: S103 (a program, which others may start)
    run([python, "-c", "import pip"])
    record = {"environment": os.path.basename(environment)}
    write(os.path.join(directory, own_packages.RECORD), json.dumps(record) + "\n")


def interpreter(environment):
    """The Python that the environment itself was made with."""
    with open(os.path.join(environment, "pyvenv.cfg")) as handle:
        home = re.search(r"^home\s*=\s*(.*?)\s*$", handle.read(), re.M).group(1)
    name = os.path.basename(os.path.dirname(packages.site_packages(environment)))
    return os.path.join(home, name)


def copy_virtualenv(environment, directory):
    """For Python 2.7: what virtualenv made of the environment, without the packages. Its Python finds itself by its own place."""
    site = packages.site_packages(environment)

    def ignored(parent, names):
        return [name for name in names if parent == os.path.dirname(site) and name == "site-packages"]

    tree = os.path.realpath(environment)
    lib = os.path.join(directory, "lib", os.path.basename(os.path.dirname(site)))
    shutil.copytree(os.path.dirname(site), lib, symlinks=True, ignore=ignored)
    os.mkdir(os.path.join(lib, "site-packages"))
    os.mkdir(os.path.join(directory, "bin"))
    for name in os.listdir(os.path.join(tree, "bin")):
        if re.match(r"^python[\d.]*$", name):
            copy(os.path.join(tree, "bin", name), os.path.join(directory, "bin", name))
    for name in ("lib64", "include"):
        if os.path.lexists(os.path.join(tree, name)):
            copy(os.path.join(tree, name), os.path.join(directory, name))


def copy(source, target):
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def run(command):
    answer = processes.run(command, LIMIT, packages.clean_variables())
    if answer.problem:
        raise NotReady("an empty directory of packages must be made, but %s." % answer.problem)


def write(path, text):
    with open(path, "w") as output:
        output.write(text)
