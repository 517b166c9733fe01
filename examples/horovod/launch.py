"""Run a script that was written for horovodrun on the executors of a Spark job, one process in each. Python 3.6 and later.

tfos-submit --executors 2 --venv ~/hvd --files train.py --py-files images.py launch.py train.py --output hdfs://namenode:8020/user/me/hvd
"""

import runpy
import sys


def run_script(arguments):
    """In every executor; its working directory has what --files named."""
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("A script that --files names is required: launch.py SCRIPT ARGUMENTS")
    import horovod.spark
    from pyspark import SparkContext

    context = SparkContext()
    executors = int(context.getConf().get("spark.executor.instances"))
    horovod.spark.run(run_script, args=(sys.argv[1:],), num_proc=executors, use_gloo=True)
