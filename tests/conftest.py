"""Code for hosts is importable after hadoop_dl."""

import hadoop_dl  # noqa: F401
