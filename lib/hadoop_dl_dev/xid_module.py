"""gpu-check's module of Xids, written from compat/xids.yml: hosts have no parser for YAML."""

from __future__ import annotations

import json

from hadoop_dl.data.compat import REPOSITORY, load

PAGE = REPOSITORY / "roles/gpu_check/files/gpu-check/gpu_check/xid_catalog.py"
TEXT = '''\
# -*- coding: utf-8 -*-
"""NVIDIA's catalogue of Xids. Written by scripts/stack docs from compat/xids.yml, which has its source."""

from __future__ import absolute_import, division, print_function

import json

DATE = "{date}"
ROWS = json.loads("""[
{rows}
]""")
'''


def page() -> str:
    """The whole module."""
    catalogue = load().subjects["xids"]
    rows = ",\n".join(json.dumps(row) for row in catalogue["xids"])
    return TEXT.format(date=catalogue["read"][0]["until"], rows=rows)
