#!/usr/bin/python
"""Keep Spark's jars in HDFS as one archive, so that no job uploads them again."""

DOCUMENTATION = r"""{
"module": "spark_libraries",
"short_description": "Keep Spark's jars in HDFS as one archive for spark.yarn.archive",
"description": [
  "Makes an uncompressed zip of the jars and puts it into HDFS under another name first, then renames it. An archive that is there is left alone; its name should therefore tell its content.",
  "What is put there, and which directories are made for it, is recorded first, so that C(remove_hdfs_files) can remove it."],
"options": {
  "jars": {"description": "Directory with Spark's jars", "type": "path", "required": true},
  "archive": {"description": "HDFS path of the archive, such as /apps/deeplearning/spark/pyspark-3.5.8-0123.zip", "type": "str", "required": true},
  "environment_file": {"description": "Shell file that sets JAVA_HOME, HADOOP_HOME and HADOOP_CONF_DIR", "type": "path", "required": true},
  "user": {"description": "Who writes to HDFS, on a cluster without Kerberos", "type": "str", "default": "hdfs"},
  "principal": {"description": "Whose login to a cluster with Kerberos; none without one", "type": "str", "default": ""},
  "keytab": {"description": "File of this host with its keys", "type": "str", "default": "", "no_log": false}
}}"""

RETURN = r"""
uri: {description: "Address of the archive with the cluster's file system, as spark.yarn.archive wants it", type: str, returned: always}
"""

import os
import re
import zipfile

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, documented, hdfs_record, kerberos_login
from ansible.module_utils.hadoop_dl_host.hdfs_command import PUT, Failure, Hdfs

DOWNLOADS = "/opt/deeplearning/downloads"  # of root: the zip while it is made


class Archive(Hdfs):
    """Spark's jars in HDFS."""

    names = ()  # of those who may own the archive and its directories, besides HDFS' superuser

    def problem(self, path, jars, local):
        """Why the file in HDFS is not the archive of these jars, or None: its name alone is no proof. local: a file for its copy."""
        problem = self.owned(path, self.names)[1]
        if problem:
            return "is not safe: %s" % problem
        length = int(self.must(["-stat", "%u %b", path]).splitlines()[-1].split()[-1])
        files = dict((name, os.path.join(jars, name)) for name in os.listdir(jars) if name.endswith(".jar"))
        size = sum(map(os.path.getsize, files.values()))
        # An uncompressed zip has the jars and at most 1 KB about each.
        if not size <= length <= size + 1024 * (len(files) + 1):
            return "has %d bytes, but the jars have %d" % (length, size)
        try:
            self.must(["-get", path, local], PUT)
            with zipfile.ZipFile(local) as archive:
                if sorted(archive.namelist()) != sorted(files):
                    return "has other files than the jars"
                changed = [name for name in files if not same(archive.open(name), files[name])]
        except (ValueError, RuntimeError, zipfile.BadZipfile) as error:
            return "is no archive (%s)" % error
        finally:
            if os.path.exists(local):
                os.unlink(local)
        return "has another %s" % changed[0] if changed else None

    def check(self, path, jars, downloads):
        problem = self.problem(path, jars, atomic_files.own_name(os.path.join(downloads, "of-hdfs.zip")))
        if problem:
            raise Failure(
                "%s in HDFS must be the archive of Spark's jars, but it %s. Jobs would run with it. Look at it (hdfs dfs -ls), remove it, "
                "and run again." % (path, problem)
            )


def same(stream, path):
    """Whether the stream has the bytes of the file."""
    with open(path, "rb") as handle:
        while True:
            chunk = handle.read(1 << 20)
            if stream.read(len(chunk) or 1) != chunk:
                return False
            if not chunk:
                return True


def make_zip(jars, path):
    """The jars in an uncompressed zip: they are compressed already, and YARN unpacks it on every node."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, True) as archive:
        for name in sorted(os.listdir(jars)):
            if name.endswith(".jar"):
                archive.write(os.path.join(jars, name), name)


def upload(hdfs, jars, archive, downloads):
    """Put the archive into HDFS."""
    local = atomic_files.own_name(os.path.join(downloads, os.path.basename(archive)))
    try:
        make_zip(jars, local)
        hdfs.must(["-mkdir", "-p", os.path.dirname(archive)])
        hdfs.put_whole(lambda draft: hdfs.must(["-put", "-f", local, draft], PUT), archive)
        hdfs.check(archive, jars, downloads)
    finally:
        if os.path.exists(local):
            os.unlink(local)


def keep(hdfs, params, ready, checking):
    """Look for the archive, and put it there; whether that is a change. ready: HDFS can be reached."""
    if ready:
        hdfs.check_launcher()
    is_uploaded = ready and hdfs.has(params["archive"])
    if is_uploaded and os.path.isdir(params["jars"]):  # in check mode they may not be there
        hdfs.check(params["archive"], params["jars"], DOWNLOADS)
    recorded = params["archive"] in hdfs_record.read(hdfs_record.PATH)["files"]
    if is_uploaded and (recorded or checking):
        return not recorded
    if not checking:
        missing_directories = [] if is_uploaded else hdfs.missing_directories(os.path.dirname(params["archive"]))
        hdfs_record.add(hdfs_record.PATH, [params["archive"]], missing_directories, params["user"])
        if not is_uploaded:
            upload(hdfs, params["jars"], params["archive"], DOWNLOADS)
    return True


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    hdfs = Archive(params["environment_file"], params["user"])
    short = re.split("[/@]", params["principal"])[0]
    hdfs.names = [short, short.lower()] if short else [params["user"]]  # auth_to_local often makes small letters
    ready = os.path.exists(params["environment_file"])
    uri = (hdfs.default_file_system() if ready else "hdfs://") + params["archive"]
    if not ready and not module.check_mode:
        module.fail_json(
            msg="%s is required (it names where Hadoop is), but it is missing. Run the role hadoop_client first."
            % params["environment_file"]
        )
    try:
        with kerberos_login.logged_in(params["principal"] if ready else "", params["keytab"]):
            changed = keep(hdfs, params, ready, module.check_mode)
    except kerberos_login.NoLogin as failure:
        module.fail_json(msg="To write to HDFS, %s. Nothing was changed there." % failure)
    except Failure as failure:
        module.fail_json(msg=str(failure))
    except (IOError, OSError) as error:
        module.fail_json(
            msg="Spark's jars must be packed in %s, but that failed: %s. Free some space there, then run this again."
            % (DOWNLOADS, error)
        )
    module.exit_json(changed=changed, uri=uri)


if __name__ == "__main__":
    main()
