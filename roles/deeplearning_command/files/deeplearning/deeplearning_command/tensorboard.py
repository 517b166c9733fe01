# -*- coding: utf-8 -*-
"""deeplearning tensorboard: the TensorBoard of an environment, for this host alone; it ends with the command, because it takes its place."""

from __future__ import absolute_import, division, print_function

import argparse
import errno
import getpass
import os
import socket

from ansible.module_utils.hadoop_dl_host.user_environment import NotReady, client_file, hadoop_environment
from ansible.module_utils.hadoop_dl_host.yarn_cluster import hadoop_configuration

from deeplearning_command import options, programs
from deeplearning_command.options import Refused, say

HERE = "127.0.0.1"
PORTS = range(6006, 6106)
FAR = ("hdfs://", "viewfs://")


def main(arguments):
    made = options.parser(
        "tensorboard",
        "[--stack NAME | --venv DIR] [--port PORT] DIRECTORY",
        "Show a training's events: the files that a TensorBoard callback or a summary writer wrote to DIRECTORY, here or in\n"
        "HDFS. It listens on this host only (%s) and prints the ssh line by which your browser reaches it. Ctrl-C ends it.\n"
        "Others who are logged in on this host can open the page as well." % HERE,
        ["deeplearning tensorboard ~/runs", "deeplearning tensorboard hdfs:///user/anna/runs"],
    )
    options.add_environment(made)
    made.add_argument("--port", type=int, help="the port (the first free one from %d on)" % PORTS[0])
    made.add_argument("--host", help=argparse.SUPPRESS)
    made.add_argument("--bind_all", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("directory", metavar="DIRECTORY", help="local, or hdfs://...")
    asked = made.parse_args(arguments)
    if asked.bind_all or asked.host not in (None, HERE, "localhost"):
        raise Refused(
            "TensorBoard asks nobody for a password, so it must listen on %s, but %s is requested. Reach it through ssh: start it "
            "without that option, and it prints the line." % (HERE, "--bind_all" if asked.bind_all else asked.host)
        )
    asked.gpus = 0  # it computes nothing, and TensorFlow would take the memory of every GPU
    directory = checked_directory(asked)
    port = free_port([asked.port] if asked.port else PORTS)

    def announce(variables):
        variables.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        say("%s at http://%s:%d. From your own computer:" % (directory, HERE, port))
        say("  ssh -N -L %d:%s:%d %s@%s" % (port, HERE, port, getpass.getuser(), socket.getfqdn()))
        say("then open http://%s:%d there. Ctrl-C here ends it." % (HERE, port))

    wanted = ["--logdir", directory, "--host", HERE, "--port", str(port)]
    return programs.replace(asked, wanted, "tensorboard", announce)


def checked_directory(asked):
    """The directory as TensorBoard needs it, once what reads it is there."""
    environment, _ = programs.place(asked)
    if not os.path.isfile(os.path.join(environment, "bin", "tensorboard")):
        raise NotReady(
            "TensorBoard is required, but %s has none. Name an environment that has it with --stack (deeplearning list)."
            % environment
        )
    if asked.directory.startswith(FAR):
        variables = hadoop_environment(client_file(asked.root, environment, "hadoop-env.sh"))
        return with_name_node(asked.directory, variables["HADOOP_CONF_DIR"])
    if "://" not in asked.directory and not os.path.isdir(asked.directory):
        raise NotReady(
            "a directory of events is required, but %s does not exist. Name the directory that the training writes to; one in HDFS "
            "begins with hdfs://." % asked.directory
        )
    return asked.directory


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


def free_port(ports):
    """The first port of these on which nothing listens."""
    for port in ports:
        probe = socket.socket()
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HERE, port))
        except (IOError, OSError) as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            continue
        finally:
            probe.close()
        return port
    shown = "%d" % ports[0] if len(ports) == 1 else "one of %d-%d" % (ports[0], ports[-1])
    raise NotReady("a free port is required, but %s is used or not allowed. Name another with --port." % shown)
