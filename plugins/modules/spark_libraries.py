#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Keep Spark's jars in HDFS as one archive, so that no job uploads them again."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: spark_libraries
short_description: Keep Spark's jars in HDFS as one archive for spark.yarn.archive
description:
  - Makes an uncompressed zip of the jars and puts it into HDFS under another name first, then renames it.
    An archive that is there is left alone; its name should therefore tell its content.
options:
  jars: {description: Directory with Spark's jars, type: path, required: true}
  archive: {description: "HDFS path of the archive, such as /apps/deeplearning/spark/pyspark-3.5.8-0123.zip", type: str, required: true}
  environment_file: {description: Shell file that sets JAVA_HOME, HADOOP_HOME and HADOOP_CONF_DIR, type: path, required: true}
  user: {description: Who writes to HDFS. On a cluster with Kerberos the ticket decides instead, type: str, default: hdfs}
  downloads: {description: Directory of root for the zip while it is made, type: path, default: /opt/deeplearning/downloads}
"""

RETURN = r"""
uri: {description: Address of the archive with the cluster's file system, as spark.yarn.archive wants it, type: str, returned: always}
"""

import os
import socket
import xml.etree.ElementTree as ElementTree
import zipfile

from ansible.module_utils import processes
from ansible.module_utils.basic import AnsibleModule

LATE = 124  # exit status that stands for a program that did not end
ASK, PUT = 120, 900  # seconds; a client whose NameNode does not answer tries for a quarter of an hour


class Failure(Exception):
    """Why there is no archive; the text has three parts."""


class Hdfs(object):
    """The hdfs command, in the environment that the role hadoop_client wrote."""

    def __init__(self, environment_file, user):
        self.environment_file, self.user = environment_file, user

    def run(self, arguments, timeout):
        """(exit status, what it said)."""
        script = '. "$1"; shift; unset CLASSPATH; PATH="$HADOOP_HOME/bin:$PATH"; exec hdfs dfs "$@"'
        command = ["/bin/sh", "-c", script, "sh", self.environment_file] + arguments
        environment = dict(os.environ, HADOOP_USER_NAME=self.user)
        answer = processes.run(command, timeout, environment)
        output = "\n".join(part for part in (answer.output, answer.error) if part)
        if answer.late:
            return LATE, "%s\nit did not end within %d s" % (output, timeout)
        return answer.status, output

    def site(self):
        """The values of the cluster's core-site.xml."""
        script = '. "$1" && printf %s "$HADOOP_CONF_DIR"'
        directory = processes.run(["/bin/sh", "-c", script, "sh", self.environment_file], ASK).output
        try:
            root = ElementTree.parse(os.path.join(directory, "core-site.xml")).getroot()  # noqa: S314 (the cluster's own)
        except (IOError, OSError, ElementTree.ParseError):
            return {}
        return dict(
            (entry.findtext("name", "").strip(), entry.findtext("value", "").strip()) for entry in root.iter("property")
        )

    def default_file_system(self):
        """fs.defaultFS of the cluster, such as hdfs://nameservice1 or maprfs://; hdfs:// where nobody says."""
        values = self.site()
        found = values.get("fs.defaultFS") or values.get("fs.default.name") or "hdfs://"
        return found[:-1] if found.endswith(":///") else found.rstrip("/") if not found.endswith("://") else found

    def check_launcher(self):
        """root runs Hadoop's launcher and the settings that it reads."""
        script = '. "$1" && printf "%s\\n" "$HADOOP_HOME/bin/hdfs" "$HADOOP_CONF_DIR/hadoop-env.sh"'
        paths = processes.run(["/bin/sh", "-c", script, "sh", self.environment_file], ASK).output.splitlines()
        found = processes.foreign(path for path in paths if os.path.exists(path)) if os.geteuid() == 0 else None
        if found:
            raise Failure(
                "Hadoop's launcher must be writable by root alone, because root runs it, but others may change %s. Nothing was uploaded. "
                "Correct its owner and mode (chown root, chmod go-w)." % found[0]
            )

    def must(self, arguments, timeout=ASK):
        status, output = self.run(arguments, timeout)
        if status:
            lines = [line for line in output.splitlines() if "WARN" not in line] or ["no word"]
            raise Failure(
                "`hdfs dfs %s` must work as the user %s, but answered: %s. Check that HDFS is up and out of safe mode (hdfs dfsadmin -report), "
                "or name a user and a directory that may be written (tensorflowonspark_hdfs_user, tensorflowonspark_hdfs_directory)."
                % (" ".join(arguments), self.user, lines[-1])
            )
        return output

    def has(self, path):
        status, output = self.run(["-test", "-f", path], ASK)
        if status == LATE:
            raise Failure(
                "HDFS must answer, but `hdfs dfs -test -f %s` did not: %s. Check that HDFS is up." % (path, output)
            )
        return status == 0

    def problem(self, path, jars):
        """Why the file in HDFS is not the archive of these jars, or None: its name alone is no proof."""
        words = self.must(["-stat", "%u %b", path]).splitlines()[-1].split()
        owner, length = words[0], int(words[-1])
        sizes = [os.path.getsize(os.path.join(jars, name)) for name in os.listdir(jars) if name.endswith(".jar")]
        # An uncompressed zip has the jars and at most 1 KB about each.
        if not sum(sizes) <= length <= sum(sizes) + 1024 * (len(sizes) + 1):
            return "has %d bytes, but the jars have %d" % (length, sum(sizes))
        kerberos = self.site().get("hadoop.security.authentication") == "kerberos"  # the ticket decides who writes
        if owner != self.user and not kerberos:
            return "belongs to %s, but must belong to %s" % (owner, self.user)
        return None

    def check(self, path, jars):
        problem = self.problem(path, jars)
        if problem:
            raise Failure(
                "%s in HDFS must be the archive of Spark's jars, but it %s. Jobs would run with it. Look at it (hdfs dfs -ls), remove it, "
                "and run again." % (path, problem)
            )


def make_zip(jars, path):
    """The jars in an uncompressed zip: they are compressed already, and YARN unpacks it on every node."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, True) as archive:
        for name in sorted(os.listdir(jars)):
            if name.endswith(".jar"):
                archive.write(os.path.join(jars, name), name)


def upload(hdfs, jars, archive, downloads, mine=None):
    """Put the archive into HDFS; under its own name only when it is complete. Another edge node may do the same at this moment."""
    mine = mine or "%s-%d" % (socket.gethostname(), os.getpid())
    local = os.path.join(downloads, "%s.%s" % (os.path.basename(archive), mine))
    uploading = "%s.uploading-%s" % (archive, mine)
    try:
        make_zip(jars, local)
        hdfs.must(["-mkdir", "-p", os.path.dirname(archive)])
        hdfs.must(["-put", "-f", local, uploading], PUT)
        hdfs.must(["-chmod", "644", uploading])
        try:
            hdfs.must(["-mv", uploading, archive])
        except Failure:
            if not hdfs.has(archive):
                raise
            hdfs.run(["-rm", "-skipTrash", uploading], ASK)  # the other node was first, with the same jars
        hdfs.check(archive, jars)
    finally:
        if os.path.exists(local):
            os.unlink(local)


def main():
    module = AnsibleModule(
        argument_spec={
            "jars": {"type": "path", "required": True},
            "archive": {"type": "str", "required": True},
            "environment_file": {"type": "path", "required": True},
            "user": {"type": "str", "default": "hdfs"},
            "downloads": {"type": "path", "default": "/opt/deeplearning/downloads"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    hdfs = Hdfs(wanted["environment_file"], wanted["user"])
    ready = os.path.exists(wanted["environment_file"])
    uri = (hdfs.default_file_system() if ready else "hdfs://") + wanted["archive"]
    if not ready and not module.check_mode:
        module.fail_json(
            msg="%s is required (it names where Hadoop is), but it is missing. Run the role hadoop_client first."
            % wanted["environment_file"]
        )
    try:
        if ready:
            hdfs.check_launcher()
        held = ready and hdfs.has(wanted["archive"])
        if held and os.path.isdir(wanted["jars"]):  # in check mode they may not be there
            hdfs.check(wanted["archive"], wanted["jars"])
    except Failure as failure:
        module.fail_json(msg=str(failure))
    if held:
        module.exit_json(changed=False, uri=uri)
    if not module.check_mode:
        try:
            upload(hdfs, wanted["jars"], wanted["archive"], wanted["downloads"])
        except Failure as failure:
            module.fail_json(msg=str(failure))
        except (IOError, OSError) as error:
            module.fail_json(
                msg="Spark's jars must be packed in %s, but that failed: %s. Free some space there, then run this again."
                % (wanted["downloads"], error)
            )
    module.exit_json(changed=True, uri=uri)


if __name__ == "__main__":
    main()
