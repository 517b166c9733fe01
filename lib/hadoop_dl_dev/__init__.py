"""What contributors run: checks, the demo cluster, benchmarks and generated pages. hadoop_dl never imports it."""
