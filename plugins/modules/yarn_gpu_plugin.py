#!/usr/bin/python
"""Ask the NodeManager of this host whether its GPU plugin still works."""

DOCUMENTATION = r"""{
"module": "yarn_gpu_plugin",
"short_description": "Ask a NodeManager whether its GPU plugin works",
"description": ["From Hadoop 3.3 on the plugin runs nvidia-smi every 3 seconds, and after 10 failures never again (MAX_REPEATED_ERROR_ALLOWED of GpuDiscoverer in the classes of 3.3.6 and 3.4.1), as when the driver is changed under it. Only a restart of the NodeManager helps."],
"options": {
  "conf_dir": {"description": "Directory of the NodeManager's configuration", "type": "path", "required": true},
  "patience": {"description": "Seconds to wait for a good answer", "type": "int", "default": 60}
}}"""

RETURN = r"""
state: {description: "works, ended, fails (nvidia-smi does), closed (nothing listens there) or silent (no answer of these)", type: str, returned: always}
words: {description: What it answered; empty if it works, type: str, returned: always}
"""

import errno
import re
import socket
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import connections, documented, processes, yarn_admin, yarn_cluster
from ansible.module_utils.hadoop_dl_host.kerberos_login import NoLogin

# Both sentences of GpuDiscoverer (3.3.6): of its own last look, and of each question after it.
ENDED = re.compile(r"for 10 times, skip(ping)? following executions")
PATH = "/ws/v1/node/resources/yarn.io%2Fgpu"
LARGEST = 64 * 1024  # bytes of an error's page
LIMIT = 40  # seconds for one answer


def address(configuration):
    """The web address of the NodeManager here. Its default is a port of every interface; a certificate and a ticket are for the host's name."""
    secure = configuration.get("yarn.http.policy") == "HTTPS_ONLY"
    scheme, key, port = ("https", "webapp.https.address", "8044") if secure else ("http", "webapp.address", "8042")
    place, _, number = configuration.get("yarn.nodemanager." + key, "").rpartition(":")
    names = [place, configuration.get("yarn.nodemanager.hostname", "")]
    name = next((name for name in names if name and "${" not in name and name != "0.0.0.0"), socket.getfqdn())  # noqa: S104 (none is opened)
    return "%s://%s:%s" % (scheme, name, number if number.isdigit() else port)


def answer(url):
    """Status and words of HTTP; 0 without an answer. A good one lists the GPUs (TestNMWebServices.testGetYarnGpuResourceInfo of Hadoop)."""
    try:
        if not yarn_cluster.ask(url).get("totalGpuDevices"):
            return [0, "its answer has no totalGpuDevices"]
    except connections.HTTPError as error:
        return [error.code, error.read(LARGEST).decode("utf-8", "replace")]
    except yarn_cluster.NO_ANSWER as problem:
        return [0, str(problem)]
    return [200, ""]


def look(url):
    """(state, words) now."""
    try:
        code, words = processes.limited(lambda: answer(url), LIMIT)
    except (processes.Late, RuntimeError) as problem:
        code, words = 0, str(problem)
    state = "works" if code == 200 else "ended" if ENDED.search(words) else "fails" if code == 500 else "silent"
    return state, yarn_cluster.text(words)[:300]


def closed(url):
    """Whether nothing listens there."""
    name, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    try:
        socket.create_connection((name, int(port)), 5).close()
    except (IOError, OSError) as problem:
        return problem.errno == errno.ECONNREFUSED
    return False


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    end = processes.clock() + module.params["patience"]
    try:
        with yarn_admin.Admin(module.params["conf_dir"], None, None, "nodemanager") as admin:
            url = address(admin.configuration) + PATH
            state, words = look(url)
            while state in ("fails", "silent") and processes.clock() < end:
                time.sleep(2)
                state, words = look(url)
            if state == "silent" and closed(url):
                state, words = "closed", "nothing listens at %s" % url
    except NoLogin as problem:
        state, words = "silent", str(problem)
    module.exit_json(changed=False, state=state, words=words)


if __name__ == "__main__":
    main()
