"""deeplearning notebook and kernel: Jupyter with an environment. Jupyter itself is a package of the user, or of the environment."""

import binascii
import os
import re
import sys

from ansible.module_utils.hadoop_dl_host import atomic_files, environment_tree
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host.user_environment import DEFAULT, ROOT, NotReady, check_own

from deeplearning_command import local_page, options, programs
from deeplearning_command.options import OK, Refused, say

PORTS = range(8888, 8988)
OURS = {"made_by": "deeplearning kernel"}  # in kernel.json: what may be replaced


def main(arguments):
    parser = options.parser(
        "notebook",
        "[--stack NAME | --venv DIR] [--gpus none] [--port PORT] [DIRECTORY]",
        "Start Jupyter for the notebooks in DIRECTORY (here). It listens on this host only (%s) and prints the ssh line and\n"
        "the address, with a secret token, by which your browser reaches it. hdfs:// works in its notebooks, and\n"
        "!tfos-submit trains on the cluster. Ctrl-C ends it and its kernels. Jupyter is a package of your own\n"
        "(deeplearning venv), if the environment does not have it." % local_page.HERE,
        ["deeplearning venv ~/my && ~/my/bin/pip install notebook", "deeplearning notebook --venv ~/my ~/notebooks"],
    )
    programs.add_options(parser)
    local_page.add_port(parser, PORTS, "--ip")
    parser.add_argument("directory", metavar="DIRECTORY", nargs="?", default=".")
    args = parser.parse_args(arguments)
    local_page.refuse_others(args.host, "Jupyter runs programs as you")
    directory = os.path.abspath(os.path.expanduser(args.directory))
    if not os.path.isdir(directory):
        raise NotReady(
            "a directory of notebooks is required, but %s does not exist. Make it, or name another." % directory
        )
    # A notebook imports modules of its directory first.
    check_own([directory], "Jupyter runs programs of this directory as you")
    tree = tree_with(args, "notebook", "notebook")
    port = local_page.free_port([args.port] if args.port else PORTS)
    token = binascii.hexlify(os.urandom(24)).decode("ascii")

    def prepare(variables):
        # Before the user's own kernels, of which one may have the same name; and without them Jupyter looks below --venv alone.
        for name, place in (("JUPYTER_PATH", "share/jupyter"), ("JUPYTER_CONFIG_PATH", "etc/jupyter")):
            places = [os.path.join(tree, place), variables.get(name)]
            variables[name] = os.pathsep.join(path for path in places if path)
        variables["JUPYTERLAB_DIR"] = os.path.join(tree, "share/jupyter/lab")
        variables["JUPYTER_TOKEN"] = token  # others read the arguments of a program, but not its variables
        local_page.announce(directory, port, "/?token=" + token)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # from a terminal it reads whether Ctrl-C was meant
        os.chdir("/")  # Jupyter up to 2022 runs the settings that it finds where it starts (CVE-2022-39286)

    program = os.path.join(tree, "bin", "jupyter-notebook")
    jupyter_options = ["--ip", local_page.HERE, "--port", str(port), "--port-retries", "0", "--no-browser"]
    jupyter_options += ["--notebook-dir", directory]
    return programs.replace(args, jupyter_options, program, prepare)


def kernel(arguments):
    parser = options.parser(
        "kernel",
        "[--stack NAME | --venv DIR] [--gpus none] [NAME]",
        "Add an environment to the kernels of another Jupyter of yours on hosts of the cluster, such as JupyterHub. NAME is\n"
        "the kernel's (deeplearning, and what the options name). Without --stack and --venv it follows the host's default.",
        ["deeplearning venv ~/my && ~/my/bin/pip install ipykernel", "deeplearning kernel --venv ~/my"],
    )
    programs.add_options(parser)
    parser.add_argument("name", metavar="NAME", nargs="?")
    args = parser.parse_args(arguments)
    args.stack = args.stack or (None if args.venv else os.environ.get(DEFAULT))
    tree_with(args, "ipykernel", "kernel")
    own = os.path.abspath(os.path.expanduser(args.venv)) if args.venv else None
    about = os.path.basename(own) if own else args.stack
    default = re.sub(r"[^\w.-]", "-", "deeplearning-" + about if about else "deeplearning")
    name = (args.name or default).lower()
    if not re.match(r"^[a-z0-9._-]+$", name):
        raise Refused("a name of letters, digits and . _ - is required, but this is %r." % name)
    command = [os.path.abspath(sys.argv[0]), "python"]
    for option, value in (
        ("--root", args.root if args.root != ROOT else None),
        ("--stack", args.stack),
        ("--venv", own),
        ("--gpus", "none" if args.gpus == 0 else None),
    ):
        command += [option, value] if value else []
    spec = {
        "argv": command + ["-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Deep learning (%s)" % (args.name or about or "default"),
        "language": "python",
        "metadata": OURS,
    }
    directory = os.path.join(data_directory(), "kernels", name)
    write(os.path.join(directory, "kernel.json"), spec)
    say('the kernel "%s" can be chosen in Jupyter. To remove it:' % spec["display_name"])
    say("  rm -r %s" % directory)
    return OK


def tree_with(args, package, command):
    """The directory, of the user or of the environment, that has a package of Jupyter."""
    environment, python = programs.place(args)
    own = os.path.dirname(os.path.dirname(python))
    for tree in (own, environment):
        if package in [entry.partition(" ")[0] for entry in packages.installed(tree)]:
            return tree
    directory = args.venv or "~/my"
    stack = "--stack %s " % args.stack if args.stack else ""
    commands = [] if args.venv else ["deeplearning venv %s%s" % (stack, directory)]
    commands += ["%s/bin/pip install %s" % (directory, package), "deeplearning %s --venv %s" % (command, directory)]
    raise NotReady(
        "%s is required, but %s does not have it. Install it in a directory of your own:%s"
        % (package, own, "".join("\n  " + line for line in commands))
    )


def data_directory():
    """Where Jupyter looks for a user's kernels."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.environ.get("JUPYTER_DATA_DIR") or os.path.join(base, "jupyter")


def write(path, spec):
    old_spec = environment_tree.read_json(path)
    if old_spec is not None and old_spec.get("metadata") != OURS:
        raise NotReady(
            "%s is not by deeplearning kernel, and stays. Name another kernel: deeplearning kernel NAME." % path
        )
    try:
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))  # the user's, with the user's umask
        atomic_files.write_json(path, spec)
    except (IOError, OSError) as error:
        raise NotReady("%s must be writable and have room, but the system answers: %s." % (path, error))
