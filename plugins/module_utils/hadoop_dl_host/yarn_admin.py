"""Commands to a ResourceManager on its own host, as the account that it runs as. Python 2.7 and 3, standard library only.

On a cluster with Kerberos the login is the ResourceManager's own, of yarn-site.xml, else a ticket that the account has. The ResourceManager's account
is always an administrator of YARN (AdminService.java of 2.10.2 and 3.3.6), and root of this host can read its keytab anyway.
"""

import os
import socket

from . import kerberos_login, processes, yarn_cluster

PRINCIPAL, KEYTAB = "yarn.resourcemanager.principal", "yarn.resourcemanager.keytab"
TIMEOUT = 300  # seconds for one command


class Failed(Exception):
    """A command that did not work; the text is a sentence."""


def own_login(configuration, daemon="resourcemanager"):
    """(principal, keytab) of this daemon of YARN here; both are empty without Kerberos, or if a manager keeps them elsewhere."""
    if not kerberos_login.is_secure(configuration):
        return "", ""
    principal, keytab = (configuration.get(name.replace("resourcemanager", daemon), "") for name in (PRINCIPAL, KEYTAB))
    if not principal or not keytab:
        return "", ""
    return principal.replace("_HOST", socket.getfqdn().lower()), keytab


class Admin(object):
    """Commands to YARN and its web addresses, with the login. account: the ResourceManager's. program: yarn, by name or path. daemon: whose login."""

    def __init__(self, conf_dir, account, program, daemon="resourcemanager"):
        self.conf_dir, self.account, self.program, self.daemon = conf_dir, account, program, daemon
        self.configuration = yarn_cluster.hadoop_configuration(conf_dir)

    def __enter__(self):
        try:
            if self.account:
                processes.account(self.account)
        except KeyError:
            raise Failed("the account %s must exist on this host, but does not" % self.account)
        principal, keytab = own_login(self.configuration, self.daemon)
        owner = self.check_owner(keytab) if principal else None
        self.login = kerberos_login.logged_in(principal, keytab, user=self.account, owner=owner)
        self.login.__enter__()
        return self

    def check_owner(self, keytab):
        """The owner's uid. yarn-site.xml may be an account's own: it names no keytab of root or of somebody else, to whose ticket this account would come."""
        owner = kerberos_login.check_keytab(keytab)
        expected = processes.account(self.account)[1] if self.account else None
        if os.geteuid() == 0 and (owner != expected if self.account else owner == 0):
            raise kerberos_login.NoLogin(
                "the keytab %s of yarn-site.xml must belong to %s, which runs the ResourceManager, but belongs to the uid %d"
                % (keytab, self.account or "the account", owner)
            )
        return owner

    def __exit__(self, *details):
        return self.login.__exit__(*details)

    def addresses(self):
        return yarn_cluster.resource_manager_addresses(self.configuration)

    def run(self, program, *arguments):
        environment = dict(os.environ, HADOOP_CONF_DIR=self.conf_dir)
        return processes.run([program] + list(arguments), TIMEOUT, environment, user=self.account)

    def rmadmin(self, *arguments):
        self.check("yarn rmadmin", arguments, self.run(self.program, "rmadmin", *arguments))

    def check(self, program, arguments, answer):
        if answer.problem:
            lines = (answer.error or answer.output).splitlines()[-1:] if answer.status not in (None, 127) else []
            cause = lines[0] if lines else answer.problem
            raise Failed("`%s %s` must work as %s, but: %s" % (program, " ".join(arguments), self.account, cause))

    def has_directory(self, uri):
        """Whether a directory of Hadoop's file systems is there."""
        return self.hdfs("-test", "-d", uri).status == 0

    def own_directory(self, uri):
        """Make it, if it is not there, and close it to others, which its owner alone can do."""
        for arguments in (("-mkdir", "-p", uri), ("-chmod", "700", uri)):
            self.check("hdfs dfs", arguments, self.hdfs(*arguments))

    def hdfs(self, *arguments):
        """The program hdfs is beside yarn."""
        return self.run(os.path.join(os.path.dirname(self.program), "hdfs"), "dfs", *arguments)
