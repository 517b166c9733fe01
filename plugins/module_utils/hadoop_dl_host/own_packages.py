"""A user's own packages on top of an environment, in a directory that `deeplearning venv` made. Python 2.7 and 3.

Part of the programs tfos-submit and deeplearning.
"""

import collections
import os
import zipfile

from . import environment_packages as packages
from . import environment_tree, user_environment
from .user_environment import NotReady

RECORD = "deeplearning.json"  # in the directory: the environment that it is for
BEHIND = "deeplearning.pth"  # adds the environment's packages behind the user's

Own = collections.namedtuple("Own", "directory environment python site")


def opened(root, directory):
    """The packages in a directory, with the path of the environment below them."""
    directory = os.path.abspath(os.path.expanduser(directory))
    site, python = packages.site_packages(directory), os.path.join(directory, "bin", "python")
    user_environment.check_own([site or directory, os.path.dirname(python)], "programs of --venv run as you")
    name = (environment_tree.read_json(os.path.join(directory, RECORD)) or {}).get("environment")
    if not name or not site:
        raise NotReady(
            "%s must be made by deeplearning venv, but has no %s. Name such a directory." % (directory, RECORD)
        )
    if not user_environment.is_sealed(os.path.join(root, "envs", name)):
        raise NotReady(
            "%s is for the environment %s, which is not on this host any more (deeplearning list). Make a new directory: "
            "deeplearning venv." % (directory, name)
        )
    return Own(directory, user_environment.environment_path(root, name), python, site)


def pack(own, path):
    """Write the packages alone into a zip archive, which another host unpacks beside the environment; its path, None without packages."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        for parent, directories, files in os.walk(own.site):
            directories[:] = sorted(name for name in directories if name != "__pycache__")
            for name in sorted(files):
                full = os.path.join(parent, name)
                if not name.endswith(".pyc") and full != os.path.join(own.site, BEHIND):
                    archive.write(full, os.path.relpath(full, own.site))
        return path if archive.namelist() else None
