"""deeplearning tensorboard: the TensorBoard of an environment, for this host alone; it ends with the command, because it takes its place."""

import argparse
import os

from ansible.module_utils.hadoop_dl_host import host_system, mapr
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady, client_file, hadoop_environment
from ansible.module_utils.hadoop_dl_host.yarn_cluster import hadoop_configuration

from deeplearning_command import local_page, options, programs

PORTS = range(6006, 6106)
FAR = ("hdfs://", "viewfs://")
MAPR = "maprfs://"
# Between two looks at a directory in HDFS; TensorBoard's own 5 s keep a tenth of a core busy for the 17 files of one small training, because TensorFlow
# 1.15 reads Hadoop's configuration again for each question.
FAR_SECONDS = 30


def main(arguments):
    parser = options.parser(
        "tensorboard",
        "[--stack NAME | --venv DIR] [--port PORT] DIRECTORY",
        "Show a training's events: the files that a TensorBoard callback or a summary writer wrote to DIRECTORY, here or in\n"
        "HDFS. It listens on this host only (%s) and prints the ssh line by which your browser reaches it. Ctrl-C ends it.\n"
        "Others who are logged in on this host can open the page as well." % local_page.HERE,
        ["deeplearning tensorboard ~/runs", "deeplearning tensorboard hdfs:///user/anna/runs"],
    )
    options.add_environment(parser)
    local_page.add_port(parser, PORTS)
    parser.add_argument("--bind_all", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("directory", metavar="DIRECTORY", help="local, hdfs://..., or maprfs:///... of a mounted MapR")
    args = parser.parse_args(arguments)
    local_page.refuse_others("--bind_all" if args.bind_all else args.host, "TensorBoard asks nobody for a password")
    args.gpus = 0  # it computes nothing, and TensorFlow would take the memory of every GPU
    directory = checked_directory(args)
    port = local_page.free_port([args.port] if args.port else PORTS)

    def announce(variables):
        variables.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        local_page.announce(directory, port)

    tensorboard_options = ["--logdir", directory, "--host", local_page.HERE, "--port", str(port)]
    tensorboard_options += ["--reload_interval", str(FAR_SECONDS)] if directory.startswith(FAR) else []
    return programs.replace(args, tensorboard_options, "tensorboard", announce)


def checked_directory(args):
    """The directory as TensorBoard needs it, once what reads it is there."""
    environment, _ = programs.place(args)
    if not os.path.isfile(os.path.join(environment, "bin", "tensorboard")):
        raise NotReady(
            "TensorBoard is required, but %s has none. Name an environment that has it with --stack (deeplearning list)."
            % environment
        )
    if args.directory.startswith(MAPR + "/"):
        args.directory = (mapr.directory(host_system.text) or "/mapr") + args.directory[len(MAPR) :]
    if args.directory.startswith(FAR):
        variables = hadoop_environment(client_file(args.root, environment, "hadoop-env.sh"))
        return with_name_node(args.directory, variables["HADOOP_CONF_DIR"])
    if "://" not in args.directory and not os.path.isdir(args.directory):
        raise NotReady(
            "a directory of events is required, but %s does not exist. Name the directory that the training writes to; one in HDFS "
            "begins with hdfs://." % args.directory
        )
    return args.directory


def with_name_node(address, configuration):
    """TensorFlow takes hdfs:///user/me for the local file system, because it names no NameNode."""
    scheme, _, path = address.partition("://")
    if not path.startswith("/"):
        return address
    default = hadoop_configuration(configuration).get("fs.defaultFS", "").rstrip("/")
    if not default.startswith(scheme + "://"):
        raise NotReady(
            "fs.defaultFS in %s/core-site.xml must name the NameNode, but is %r. Name it yourself: %s://NAMENODE%s."
            % (configuration, default, scheme, path)
        )
    return default + path
