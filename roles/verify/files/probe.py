"""Answer every question of the suite (tests/infra) about one host at once, as one JSON line.

Runs on the host: Python 2.7 and 3, standard library only, packed with processes, environment_imports and what it imports, and gpu_check
(hadoop_dl.hosts.verify). Called with the root of what this project installs, an environment's directory, what the GPUs should be, and the
texts of the programs that the environment's own Python runs. Each answer stands alone: one that fails says why and hides no other.
"""

import json
import os
import sys

from ansible.module_utils.hadoop_dl_host import (
    environment_imports,
    environment_tree,
    hdfs_command,
    kerberos_login,
    processes,
    sandbox_cell,
    yarn_cluster,
    yarn_nodes,
)
from ansible.module_utils.hadoop_dl_host.user_environment import client_file
from gpu_check.cli import results
from gpu_check.host import Host

TIMEOUT = 240  # seconds for one program; for a NameNode that does not answer, a GPU that hangs
READ_TIMEOUT = 900  # seconds for everything
NOBODY = "nobody" if os.geteuid() == 0 else None  # runs what may be of a wheel
KEPT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "HOME",
    "TZ",
    "TF_CPP_MIN_LOG_LEVEL",
    "CUDA_VISIBLE_DEVICES",
)  # for the environment's own programs
NAMES = ("JAVA_HOME", "HADOOP_HOME", "HADOOP_HDFS_HOME", "HADOOP_CONF_DIR", "LD_LIBRARY_PATH", "CLASSPATH")


def run(command, environment=None, also=(), user=None):
    """The exit status, the output, everything that was said, and what went wrong (or None). also: files that the program reads as code."""
    code = [path for path in [command[0]] + list(also) if os.path.exists(path)]
    answer = processes.run(command, TIMEOUT, environment, user if user else processes.unprivileged(code))
    return {"status": answer.status, "output": answer.output, "said": answer.error, "error": answer.problem}


def hadoop_environment(path):
    answer = run(["/bin/sh", "-c", '. "$1" && exec /usr/bin/env', "sh", path], {"PATH": "/usr/bin:/bin"})
    values = dict(line.split("=", 1) for line in answer["output"].splitlines() if "=" in line)
    return dict((name, values[name]) for name in NAMES if name in values)


def seal(environment):
    """What the seal says, and what changed since it was set."""
    try:
        with open(os.path.join(environment, ".deeplearning", "sealed.json")) as handle:
            content = json.load(handle)
    except (IOError, OSError, ValueError) as error:
        return None, str(error)
    return content, environment_tree.problem(environment)


def unasked(login, configuration):
    """Why nothing is read from HDFS; empty if it is read."""
    if login.get("login") == "none":
        return "hadoop_login is none: HDFS and YARN are asked nothing"
    if kerberos_login.is_secure(configuration) and not login.get("principal"):
        return "the cluster requires Kerberos, and this host has no hadoop_principal and hadoop_keytab (docs/operate/kerberos.md)"
    return ""


def inside(environment, variables, program, login=None):
    """The answers of the program by name, and what stands for those that never came. Root's rights and variables are not the program's.

    login: with which HDFS is asked; None: it is not.
    """
    python = os.path.join(environment, "bin", "python")
    child_variables = dict((name, variables[name]) for name in KEPT + NAMES if name in variables)
    command = [python, "-E", "-s", "-c", program]
    try:
        with environment_imports.runner(os.path.realpath(environment)) as run_confined:
            completed = run_confined(command, TIMEOUT, child_variables)
        output, problem = completed.output, completed.problem
    except (sandbox_cell.NotConfined, IOError, OSError) as error:
        output, problem = "", str(error)
    # The NameNode is behind the network, which a cell lacks, and Hadoop asks for the name of the account.
    hdfs, answers = None, {}
    if os.path.exists(python) and login is not None:
        try:
            with kerberos_login.logged_in(login.get("principal"), login.get("keytab"), NOBODY) as ticket:
                own = dict(child_variables, HOME="/", **({kerberos_login.CACHE: ticket} if ticket else {}))
                hdfs = processes.run(command + ["hdfs"], TIMEOUT, own, NOBODY)
        except kerberos_login.NoLogin as failure:
            answers["hdfs"] = {"value": None, "error": str(failure)}
    for line in (output + "\n" + (hdfs.output if hdfs else "")).splitlines():
        if line.startswith("{"):
            answer = json.loads(line)
            answers[answer["name"]] = answer
    return answers, {"value": None, "error": problem or (hdfs and hdfs.problem) or "no answer"}


def gpu_answers(expected, environment, product):
    """What gpu-check answers about this host, in the environment that is verified."""
    host = Host(python=os.path.join(environment, "bin", "python"), program=product)
    host.expected.update(expected)
    has_gpus = bool(host.expected.get("driver") or host.pci())
    return {"layer": has_gpus, "results": dict((answer["name"], answer) for answer in results(host, []))}


def archived(command, launcher, places, login):
    """Whether the file is in HDFS. Only root's own launcher gets the ticket."""
    code = hdfs_command.code(*places)
    own_launcher = processes.unprivileged([command[0]] + code) is None
    try:
        with kerberos_login.logged_in(login.get("principal") if own_launcher else None, login.get("keytab")) as ticket:
            return run(command, dict(launcher, **({kerberos_login.CACHE: ticket} if ticket else {})), code)
    except kerberos_login.NoLogin as failure:
        return {"status": None, "output": "", "said": "", "error": str(failure)}


def spark(root, environment, variables, login):
    """Where Spark is, whether it starts, and whether its jars are in HDFS; None if no client is installed."""
    try:
        with open(client_file(root, environment, "tfos-submit.json")) as handle:
            home = json.load(handle)["spark_home"]
        with open(client_file(root, environment, "spark-defaults.conf")) as handle:
            lines = [line.split(None, 1) for line in handle.read().splitlines()]
    except (IOError, OSError, ValueError, KeyError):
        return None
    defaults = dict(line for line in lines if len(line) == 2 and line[0][0] != "#")
    launcher = dict((name, value) for name, value in variables.items() if name != "CLASSPATH")
    archive = defaults.get("spark.yarn.archive")
    places = [variables.get(name, "/nowhere") for name in ("HADOOP_HOME", "HADOOP_CONF_DIR", "JAVA_HOME")]
    hdfs = os.path.join(variables.get("HADOOP_HOME", "/usr"), "bin", "hdfs")
    hdfs = hdfs if os.path.exists(hdfs) else "/usr/bin/hdfs"
    return {
        "home": home,
        # It may be of a wheel.
        "version": run([os.path.join(home, "bin", "spark-submit"), "--version"], launcher, user=NOBODY),
        "archive": archive,
        "archived": archived([hdfs, "dfs", "-test", "-f", archive], launcher, places, login)
        if archive and login is not None
        else None,
    }


def yarn(yarn_query, login):
    """The nodes with one of these names, as the ResourceManager has them; None if it is not asked. yarn_query: conf_dir and names."""
    if not yarn_query or login is None:
        return None
    addresses = yarn_cluster.resource_manager_addresses(yarn_cluster.hadoop_configuration(yarn_query["conf_dir"]))
    try:
        with kerberos_login.logged_in(login.get("principal"), login.get("keytab")):
            nodes = yarn_nodes.cluster(addresses)[2]
    except (kerberos_login.NoLogin, yarn_nodes.Silent) as problem:
        return {"error": str(problem), "nodes": []}
    own_nodes = yarn_nodes.of_host(nodes, yarn_query["names"])
    summaries = [dict(yarn_nodes.summary(node), reports=bool(yarn_nodes.reporting([node]))) for node in own_nodes]
    return {"error": None, "nodes": summaries}


def read(root, environment, expected, programs, login, yarn_query):
    """Everything about this host. expected: what gpu-check must find, or nothing for a host that promises no GPU. yarn_query: of YARN, or nothing.

    programs: the texts of environment_questions.py and of gpu-check's product.py. login: to Hadoop (login, principal, keytab).
    """
    current = os.path.join(root, "current")
    sealed, changed = seal(environment)
    hadoop = hadoop_environment(client_file(root, environment, "hadoop-env.sh"))
    variables = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="1")  # warnings name the libraries that are missing
    variables.update((str(name), str(value)) for name, value in hadoop.items())
    libhdfs = os.path.join(hadoop.get("HADOOP_HDFS_HOME", "/nowhere"), "lib", "native", "libhdfs.so")
    load = 'import ctypes, os; ctypes.CDLL(os.environ["HADOOP_HDFS_HOME"] + "/lib/native/libhdfs.so")'
    variables["CUDA_VISIBLE_DEVICES"] = ""  # gpu-check asks about the GPUs; nothing else takes memory there
    reason = unasked(login, yarn_cluster.hadoop_configuration(hadoop.get("HADOOP_CONF_DIR", "/nowhere")))
    login = None if reason else login
    answers, unanswered = inside(environment, variables, programs["environment_questions"], login)
    return {
        "environment": environment,
        "exists": os.path.isdir(environment),
        "current": os.path.join(root, os.readlink(current)) if os.path.islink(current) else None,
        "seal": sealed,
        "changed": changed,
        "inside": answers,
        "unanswered": unanswered,
        "hadoop": hadoop,
        "java": run([os.path.join(hadoop.get("JAVA_HOME", "/nowhere"), "bin", "java"), "-version"]),
        "libhdfs": run([sys.executable, "-E", "-s", "-c", load], variables, [libhdfs]),
        "missing_jars": [
            path
            for path in hadoop.get("CLASSPATH", "").split(":")
            if path.endswith(".jar") and not os.path.exists(path)
        ],
        "nvidia_smi": run(["nvidia-smi", "-L"]),
        "gpu": gpu_answers(expected, environment, programs["product"]) if expected else None,
        "submit": run([os.path.join(root, "bin", "tfos-submit"), "--help"]),
        "login": run(["su", "-", "-s", "/bin/sh", "nobody", "-c", "command -v tfos-submit"]),
        "hdfs_unasked": reason,
        "spark": spark(root, environment, variables, login),
        "yarn": yarn(yarn_query, login),
    }


def main(root, environment, expected, programs, login, yarn_query):
    try:
        answer = processes.limited(lambda: read(root, environment, expected, programs, login, yarn_query), READ_TIMEOUT)
    except processes.Late as late:
        answer = {
            "late": "the host accepts connections, but asking it gave %s. A disk or a network file system that does not answer "
            "does this; look for processes in state D (ps -eo pid,stat,args), repair the host, and run again" % late
        }
    sys.stdout.write(json.dumps(answer, sort_keys=True) + "\n")
