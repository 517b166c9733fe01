"""The hdfs command of a host, in the environment that the role hadoop_client wrote. Python 2.7 and 3, standard library."""

import glob
import os
import re
import uuid

from . import kerberos_login, processes, yarn_cluster

LATE = 124  # exit status that stands for a program that did not end
ROW = re.compile(r"^[d-][rwxsStT-]{9}")  # of -ls
ASK, PUT = 120, 900  # seconds; a client whose NameNode does not answer tries for a quarter of an hour


def code(home, conf_dir, java_home):
    """Files that a launcher of Hadoop runs or reads as code. Whoever may write to one of them becomes root if root runs the launcher."""
    names = [home + "/bin/hdfs", home + "/bin/hadoop", conf_dir + "/hadoop-env.sh", java_home + "/bin/java"]
    return [path for path in names + sorted(glob.glob(home + "/libexec/*.sh")) if os.path.exists(path)]


def refusal(output):
    """The line of Hadoop's answer that has the reason."""
    return [line.strip() for line in output.splitlines() if kerberos_login.REFUSED.search(line)][-1]


def answer(output):
    """The last line of Hadoop's answer that is neither a warning of its log nor its usage, which follows some answers."""
    message = output.split("\nUsage: hadoop fs ")[0]
    return ([line for line in message.splitlines() if "WARN" not in line] or ["no word"])[-1]


def shown(arguments):
    """A command as messages have it; of many files only the first ones."""
    return " ".join(arguments[:6] + ["..."] * (len(arguments) > 6))


def parents(path):
    """The directories on the way to a path or an address of a file system, from its root on."""
    top = re.match(r"^(?:[^:/]+://[^/]*)?/?", path).group(0)
    parts = path[len(top) :].split("/")[:-1]
    return [top] + [top + "/".join(parts[: number + 1]) for number in range(len(parts))]


class Failure(Exception):
    """Why it was not done; the text has three parts."""


class Hdfs(object):
    """The hdfs command, in the environment that the role hadoop_client wrote."""

    # What to do without a login, and if a command is refused.
    log_in = "Set hadoop_principal and hadoop_keytab for this host, or hadoop_login: none (docs/operate/kerberos.md)."
    way = (
        "Check that HDFS is up and out of safe mode (hdfs dfsadmin -report), or name a user and a directory that may be written "
        "(tensorflowonspark_hdfs_user, tensorflowonspark_hdfs_directory)."
    )

    def __init__(self, environment_file, user):
        self.environment_file, self.user = environment_file, user

    def command(self, arguments):
        script = '. "$1"; shift; unset CLASSPATH; PATH="$HADOOP_HOME/bin:$PATH"; exec hdfs dfs "$@"'
        return ["/bin/sh", "-c", script, "sh", self.environment_file] + arguments

    def variables(self):
        return dict(os.environ, HADOOP_USER_NAME=self.user)

    def run(self, arguments, timeout):
        """(exit status, what it said)."""
        answer = processes.run(self.command(arguments), timeout, self.variables())
        output = "\n".join(part for part in (answer.output, answer.error) if part)
        if answer.late:
            return LATE, "%s\nit did not end within %d s" % (output, timeout)
        if answer.status and kerberos_login.REFUSED.search(output):
            raise Failure(
                "HDFS requires a Kerberos login that it accepts, but `hdfs dfs %s` was refused: %s. %s"
                % (shown(arguments), refusal(output), self.log_in)
            )
        return answer.status, output

    def site(self):
        """The values of Hadoop's configuration."""
        script = '. "$1" && printf %s "$HADOOP_CONF_DIR"'
        directory = processes.run(["/bin/sh", "-c", script, "sh", self.environment_file], ASK).output
        return yarn_cluster.hadoop_configuration(directory)

    def default_file_system(self):
        """fs.defaultFS of the cluster, such as hdfs://nameservice1 or maprfs://; hdfs:// if neither is set."""
        values = self.site()
        uri = values.get("fs.defaultFS") or values.get("fs.default.name") or "hdfs://"
        return uri[:-1] if uri.endswith(":///") else uri.rstrip("/") if not uri.endswith("://") else uri

    def check_launcher(self):
        """root runs Hadoop's launcher, Java, and the settings that they read."""
        script = '. "$1" && printf "%s\\n" "$HADOOP_HOME" "$HADOOP_CONF_DIR" "$JAVA_HOME"'
        answer = processes.run(["/bin/sh", "-c", script, "sh", self.environment_file], ASK)
        places = (answer.output.split("\n") + [""] * 3)[:3]  # the last ones may be empty
        foreign_file = processes.foreign(code(*places)) if os.geteuid() == 0 else None
        if foreign_file:
            raise Failure(
                "Hadoop's launcher must be writable by root alone, because root runs it, but others may change %s. Nothing was changed in HDFS. "
                "Correct its owner and mode (chown root, chmod go-w)." % foreign_file[0]
            )

    def must(self, arguments, timeout=ASK):
        status, output = self.run(arguments, timeout)
        if status:
            raise Failure(
                "`hdfs dfs %s` must work as the user %s, but answered: %s. %s"
                % (shown(arguments), self.user, answer(output), self.way)
            )
        return output

    def put_whole(self, upload, path):
        """Put a file for everyone: upload(draft) writes it, and it has its own name only if it is complete. Another host may do the same at this moment."""
        draft = "%s.uploading-%s" % (path, uuid.uuid4().hex[:12])
        try:
            upload(draft)
            self.must(["-chmod", "644", draft])
            self.must(["-mv", draft, path])
        except BaseException as problem:  # also if a user interrupts it
            self.run(["-rm", "-f", "-skipTrash", draft, draft + "._COPYING_"], ASK)  # that name while -put writes it
            if not isinstance(problem, Failure) or not self.has(path):  # the other one was first
                raise

    def has(self, path):
        status, output = self.run(["-test", "-f", path], ASK)
        if status == LATE:
            raise Failure(
                "HDFS must answer, but `hdfs dfs -test -f %s` did not: %s. Check that HDFS is up." % (path, output)
            )
        return status == 0

    def listed(self, paths, kind="-"):
        """(exit status, path -> size of the files that are there, what it said); of a directory, its files. kind: d for directories."""
        status, output = self.run(["-ls"] + paths, ASK)
        rows = [line.split() for line in output.splitlines() if line.startswith(kind)]
        sizes = dict((row[7], int(row[4])) for row in rows if len(row) == 8 and row[4].isdigit())
        if status == LATE:
            raise Failure(
                "HDFS must answer, but `hdfs dfs -ls %s` did not: %s. Check that HDFS is up."
                % (shown(paths), answer(output))
            )
        return status, sizes, output

    def owned(self, path, names):
        """(row of -ls, None), or (None, why others than these users and HDFS' superuser can exchange what is at the path); (None, None) if it is missing."""
        places = parents(path)
        output = self.run(["-ls", "-d"] + places + [path], ASK)[1]
        rows = dict((line.split(None, 7)[-1], line.split(None, 7)) for line in output.splitlines() if ROW.match(line))
        # Whoever owns the root of HDFS is its superuser, or can exchange everything below.
        trusted = set(names).union(rows[places[0]][2:3] if places[0] in rows else [])
        for name in [name for name in places + [path] if name in rows]:
            mode, owner = rows[name][0], rows[name][2]
            if owner not in trusted:
                return None, "%s must belong to %s, but belongs to %s" % (name, " or ".join(sorted(trusted)), owner)
            # In a directory with the sticky bit, such as /tmp, only its owner can exchange what is there.
            if "w" in mode[5] + mode[8] and not (mode[9] in "tT" and name in places[:-1]):
                return (
                    None,
                    "only its owner may be able to write to %s, but its mode is %s (hdfs dfs -chmod go-w %s)"
                    % (
                        name,
                        mode,
                        name,
                    ),
                )
        if path in rows and not set(rows).issuperset(places):
            return None, "HDFS must tell who owns %s, but answered: %s" % (", ".join(places), answer(output))
        return rows.get(path), None

    def missing_directories(self, path):
        """Those of a directory and its parents that are not there, the deepest first."""
        paths = []
        while path not in ("", "/"):
            paths.append(path)
            path = os.path.dirname(path)
        existing_paths = self.listed(["-d"] + paths, "d")[1]
        return [path for path in paths if path not in existing_paths]
