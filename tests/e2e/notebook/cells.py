# -*- coding: utf-8 -*-
"""Run the cells of a notebook as Jupyter does, and print what they wrote; status 1 if one raised. Python 2.7 and 3, with jupyter_client.

python cells.py NOTEBOOK KERNEL       a kernel by its name in Jupyter's directories
python cells.py NOTEBOOK ADDRESS      a new kernel of the server at this address, which has the token
"""

from __future__ import absolute_import, division, print_function

import io
import json
import os
import sys

from jupyter_client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from jupyter_core.paths import jupyter_runtime_dir

LIMIT = 600  # seconds for a cell


def of_server(address):
    """A client of a new kernel, which the server was asked for."""
    from tornado.httpclient import HTTPClient, HTTPRequest

    base, _, token = address.partition("?token=")
    headers = {"Authorization": "token " + token}
    request = HTTPRequest(base + "api/kernels", method="POST", body="", headers=headers, request_timeout=60)
    name = json.loads(HTTPClient().fetch(request).body.decode("utf-8"))["id"]
    path = os.path.join(jupyter_runtime_dir(), "kernel-%s.json" % name)
    client = BlockingKernelClient(connection_file=path)
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return client


def show(message):
    content = message["content"]
    text = content.get("text") or "\n".join(content.get("traceback", []))
    sys.stdout.write(text if str is not bytes else text.encode("utf-8"))
    sys.stdout.flush()


def run(client, path):
    with io.open(path, encoding="utf-8") as handle:
        cells = [cell for cell in json.load(handle)["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        reply = client.execute_interactive("".join(cell["source"]), timeout=LIMIT, output_hook=show)
        if reply["content"]["status"] != "ok":
            return 1
    return 0


def main(path, kernel):
    if "://" in kernel:
        return run(of_server(kernel), path)
    manager, client = start_new_kernel(kernel_name=kernel, cwd=os.path.dirname(os.path.abspath(path)))
    try:
        return run(client, path)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
