"""What contributors run: checks, the demo cluster, benchmarks and the site. hadoop_dl never imports it."""

import hadoop_dl  # noqa: F401  (makes code for hosts importable)
