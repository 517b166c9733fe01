"""The ticket of a job on a cluster with Kerberos: the user's own, or one from a keytab."""

import os
import pwd
import re

from ansible.module_utils.hadoop_dl_host import kerberos_login, processes
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady

from tfos_submit.outcome import say
from tfos_submit.spark import hdfs_user

# When the tokens end that an executor starts with, and milliseconds of hdfs-default.xml. YARN renews those of a job by ticket until max-lifetime.
# With a keytab they come from the application master: YARN does not know them, and Spark gives new ones to its JVMs only.
BY_TICKET = ("dfs.namenode.delegation.token.max-lifetime", "604800000")
BY_KEYTAB = ("dfs.namenode.delegation.token.renew-interval", "86400000")
AGAIN = 1800  # seconds after which a ticket from a keytab is replaced, long before it ends
WAYS = "Run kinit, or add --principal and --keytab."


class Login(object):
    """The job's ticket. Everything that this program starts finds it by KRB5CCNAME."""

    def __init__(self, options, configuration, directory):
        """configuration: Hadoop's. directory: of this job, which nobody else can enter; the ticket from a keytab is there."""
        self.principal, self.keytab = options.principal, options.keytab
        self.secure = kerberos_login.is_secure(configuration)
        self.end, usual = BY_KEYTAB if self.keytab else BY_TICKET
        self.tokens = int(configuration.get(self.end, usual)) // 1000
        self.timeout = options.timeout
        self.cache = os.path.join(directory, "ticket")
        self.since = None

    def begin(self):
        """Check the ticket, or get it, before anything is submitted."""
        if not self.secure and self.keytab:
            raise NotReady(
                "--principal and --keytab are for a cluster with Kerberos, but core-site.xml does not ask for it. Leave them out."
            )
        if not self.secure:
            return
        if self.timeout > self.tokens:
            say(
                "the job may take %d s (--timeout), but its executors' tokens for HDFS end after %d s (%s). From then on TensorFlow neither reads nor "
                "writes hdfs://. Write a checkpoint before, and begin there with another job."
                % (self.timeout, self.tokens, self.end)
            )
        if not self.keytab:
            # Java takes the name as a path, without FILE: before it.
            os.environ[kerberos_login.CACHE], self.principal = own_ticket()
            return
        try:
            self.replace()
        except kerberos_login.NoLogin as failure:
            raise NotReady("%s." % failure)
        os.environ[kerberos_login.CACHE] = self.cache

    def replace(self):
        kerberos_login.log_in(self.principal, self.keytab, self.cache)
        self.since = processes.clock()

    def names(self, user):
        """This user's names in HDFS: with Kerberos the principal's first part, or what the site makes of it (auth_to_local): the account's."""
        account = pwd.getpwuid(os.geteuid()).pw_name
        return [user] if user else [re.split("[/@]", self.principal)[0], account] if self.principal else [account]

    def renew(self):
        """A long job asks YARN until its end, with a ticket that ends after some hours."""
        if self.since is None or processes.clock() - self.since < AGAIN:
            return
        try:
            self.replace()
        except kerberos_login.NoLogin as failure:
            self.since = processes.clock()
            say("%s. The ticket of before is used as long as it lasts." % failure)


def own_ticket():
    """The path of the user's ticket cache, if it has a ticket and Java can read it, and whose ticket it is."""
    listed = processes.run(["klist"], kerberos_login.TIMEOUT, dict(os.environ, LC_ALL="C"))
    if listed.status == 127:
        raise NotReady("klist is required to check the Kerberos ticket, but is missing. Install krb5-workstation.")
    if listed.problem:
        reason = listed.problem if listed.late else (listed.error or listed.output or "nothing").splitlines()[-1]
        raise NotReady("the cluster requires a Kerberos ticket, but there is none (%s). %s" % (reason, WAYS))
    cache = re.search(r"^Ticket cache: (?:(\w+):)?(.*)$", listed.output, re.M)
    kind, path = cache.groups() if cache else (None, "")
    if kind not in (None, "FILE"):
        raise NotReady(
            "the Kerberos ticket must be in a file, but is in %s:%s, which Java cannot read. Run: "
            "export KRB5CCNAME=/tmp/krb5cc_$(id -u); kinit" % (kind, path)
        )
    user = re.search(r"^Default principal: (.*)$", listed.output, re.M)
    if processes.run(["klist", "-s"], kerberos_login.TIMEOUT).status != 0:
        end = re.search(r"^\S+ \S+\s+(\S+ \S+)\s+krbtgt/", listed.output, re.M)
        raise NotReady(
            "the cluster requires a Kerberos ticket that is valid, but that of %s %s. %s"
            % (user.group(1) if user else "this user", "ended at " + end.group(1) if end else "is not", WAYS)
        )
    return path, user.group(1) if user else ""


def yarn_user(configuration):
    """The name that YARN has for this user. configuration: Hadoop's. Raises NotReady without a ticket on a cluster with Kerberos.

    There the name is the principal's first part, and KRB5CCNAME points to its ticket from then on.
    """
    if not kerberos_login.is_secure(configuration):
        return hdfs_user(os.environ, configuration)
    os.environ[kerberos_login.CACHE], principal = own_ticket()
    return re.split("[/@]", principal)[0]
