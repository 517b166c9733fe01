"""A web page of a program on this host, for who comes through ssh: what tensorboard and notebook have in common."""

import argparse
import errno
import getpass
import socket

from ansible.module_utils.hadoop_dl_host.user_environment import NotReady

from deeplearning_command.options import Refused, say

HERE = "127.0.0.1"


def add_port(parser, ports, *aliases):
    """The option --port, and those by which the program itself would listen on other addresses, which are refused."""
    parser.add_argument("--port", type=port_number, help="the port (the first free one from %d on)" % ports[0])
    parser.add_argument("--host", *aliases, dest="host", help=argparse.SUPPRESS)


def port_number(text):
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError("a port from 1 to 65535 is required, but this is %r" % text)
    return int(text)


def refuse_others(host, reason):
    if host not in (None, HERE, "localhost"):
        raise Refused(
            "%s, so it must listen on %s, but %s is requested. Reach it through ssh: start it without that option, and it prints "
            "the line." % (reason, HERE, host)
        )


def announce(directory, port, path=""):
    say("%s at http://%s:%d. From your own computer:" % (directory, HERE, port))
    say("  ssh -N -L %d:%s:%d %s@%s" % (port, HERE, port, getpass.getuser(), socket.getfqdn()))
    say("then open http://%s:%d%s there. Ctrl-C here ends it." % (HERE, port, path))


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
    words = "%d" % ports[0] if len(ports) == 1 else "one of %d-%d" % (ports[0], ports[-1])
    raise NotReady("a free port is required, but %s is used or not allowed. Name another with --port." % words)
