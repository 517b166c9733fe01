"""gpu-check's module of Xids, written from compat/xids.yml: hosts have no parser for YAML."""

import json

from hadoop_dl.data.compat import REPOSITORY, load

MODULE = REPOSITORY / "roles/gpu_check/files/gpu-check/gpu_check/xid_catalog.py"
TEXT = '''\
# -*- coding: utf-8 -*-
"""NVIDIA's catalogue of Xids. Written by scripts/stack data xids from compat/xids.yml, which has its source."""

import json

DATE = "{date}"
ROWS = json.loads("""[
{rows}
]""")
'''


def text() -> str:
    catalogue = load().subjects["xids"]
    rows = ",\n".join(json.dumps(row) for row in catalogue["xids"])
    return TEXT.format(date=catalogue["read"][0]["until"], rows=rows)


def main() -> int:
    MODULE.write_text(text(), encoding="utf-8")
    print(f"{MODULE.name} was written.")
    return 0
