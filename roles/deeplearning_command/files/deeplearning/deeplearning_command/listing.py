"""deeplearning list: the environments of this host, from their own files; nothing of TensorFlow is started."""

from __future__ import absolute_import, division, print_function

import glob
import os
import re

from ansible.module_utils.hadoop_dl_host import environment_names, user_environment
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host.text_columns import columns
from ansible.module_utils.hadoop_dl_host.user_environment import DEFAULT, NotReady

from deeplearning_command import options
from deeplearning_command.options import OK, say

TENSORFLOW = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu")
BUILD = "python/platform/build_info.py"  # of TensorFlow: how its wheel was compiled
TITLES = ("", "STACK", "TENSORFLOW", "PYTHON", "CUDA", "FOR", "NAME")


def main(arguments):
    parser = options.parser(
        "list",
        "",
        "The environments of this host. * marks the default, which all commands and tfos-submit use without --stack. CUDA is\n"
        "the version that TensorFlow was compiled for. Another default for you: export %s=NAME" % DEFAULT,
        ["deeplearning list", "deeplearning run --stack tf2.15 train.py     the beginning of a stack's name is enough"],
    )
    root = parser.parse_args(arguments).root
    names = user_environment.installed_names(root)
    if not names:
        raise NotReady(
            "an environment is required in %s/envs, but there is none. An operator installs one with "
            "ansible-playbook site.yml." % root
        )
    try:
        default = os.path.basename(options.chosen(root, None))
    except NotReady as error:
        default = None
        say("there is no default: %s" % error)
    rows = [TITLES] + [row(root, name, name == default) for name in names]
    print("\n".join(columns(rows)))
    return OK


def row(root, name, is_default):
    path = os.path.join(root, "envs", name)
    versions = dict(entry.split(" ", 1) for entry in packages.installed(path))
    site = packages.site_packages(path)
    package = ([candidate for candidate in TENSORFLOW if candidate in versions] or [""])[0]
    cuda = cuda_of(site, versions) if site else None
    gpu = cuda is not None or package == "tensorflow-gpu"
    python = os.path.basename(os.path.dirname(site))[len("python") :] if site else "-"
    cells = (environment_names.stack_of(name), versions.get(package, "-"), python, cuda or "-")
    return ("*" if is_default else "",) + cells + ("GPU and CPU" if gpu else "CPU", name)


def cuda_of(site, versions):
    """The CUDA that TensorFlow was compiled for; "yes" if it does not tell which; None for one without."""
    for project, version in versions.items():
        if re.match(r"^nvidia-cuda-runtime(-cu\d+)?$", project):
            return ".".join(version.split(".")[:2])
    for path in glob.glob(os.path.join(site, "tensorflow*", BUILD)):
        with open(path) as handle:
            text = handle.read()
        if re.search(r"is_cuda_build'?\s*[=,]\s*True", text):
            number = re.search(r"cuda_version(?:_number)?'?\s*[=,]\s*'([\d.]+)'", text)
            return number.group(1) if number else "yes"
    return None
