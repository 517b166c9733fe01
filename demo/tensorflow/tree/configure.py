"""A stand-in of TensorFlow's configure.py: its variables, its questions, its defaults, the file that it writes.

Names and texts from configure.py of the tags v1.6.0, v1.15.0, v2.1.0, v2.2.0 and v2.8.0 of https://github.com/tensorflow/tensorflow.
"""

from __future__ import print_function

import os
import re
import subprocess
import sys

try:
    from shutil import which
except ImportError:
    from distutils.spawn import find_executable as which

RCFILE = ".tf_configure.bazelrc"
SETUP = "tensorflow/tools/pip_package/setup.py"
# variable, what the question names, default, line of .tf_configure.bazelrc for yes, first version that asks, first that does not
FEATURES = (
    ("TF_NEED_JEMALLOC", "jemalloc as malloc", True, "build --define with_jemalloc=true", "1.0", "1.12"),
    ("TF_NEED_GCP", "Google Cloud Platform", True, "build --define with_gcp_support=true", "1.0", "1.12"),
    ("TF_NEED_HDFS", "Hadoop File System", True, "build --define with_hdfs_support=true", "1.0", "1.12"),
    ("TF_NEED_S3", "Amazon S3 File System", True, "build --define with_s3_support=true", "1.4", "1.12"),
    ("TF_NEED_KAFKA", "Apache Kafka Platform", False, "build --define with_kafka_support=true", "1.6", "1.12"),
    ("TF_ENABLE_XLA", "XLA JIT", True, "build --define with_xla_support=true", "1.0", "2.4"),
    ("TF_NEED_GDR", "GDR", False, "build --define with_gdr_support=true", "1.4", "1.12"),
    ("TF_NEED_VERBS", "VERBS", False, "build --define with_verbs_support=true", "1.2", "1.12"),
    ("TF_NEED_OPENCL_SYCL", "OpenCL SYCL", False, "build --config=sycl", "1.5", "2.4"),
    ("TF_NEED_ROCM", "ROCm", False, "build --config=rocm", "1.12", "3.0"),
    ("TF_NEED_CUDA", "CUDA", False, "build --config=cuda", "1.0", "3.0"),
)
BAZEL = {
    "1.6": ("0.5.4", "9.9"),
    "1.15": ("0.24.1", "0.26.1"),
    "2.0": ("0.24.1", "0.26.1"),
    "2.1": ("0.27.1", "0.29.1"),
    "2.2": ("2.0.0", "2.0.0"),
    "2.8": ("4.2.1", "99.0.0"),
}


class UserInputError(Exception):
    pass


def number(text):
    return [int(part) for part in text.split("-")[0].split(".")]


def version():
    with open(SETUP) as handle:
        return re.search(r"^_VERSION = ['\"]([\d.]+)", handle.read(), re.M).group(1)


def get_input(question):
    try:
        try:
            return raw_input(question)
        except NameError:
            return input(question)
    except EOFError:
        return ""


def value_of(variables, name, question, default):
    value = variables.get(name)
    return value if value is not None else get_input(question) or default


def yes_or_no(variables, name, question, default):
    value = variables.get(name)
    if value is not None:
        if value.strip().lower() in ("1", "t", "true", "y", "yes"):
            return True
        if value.strip().lower() in ("0", "f", "false", "n", "no"):
            return False
        raise UserInputError(
            "Environment variable %s must be set as a boolean indicator.\nCurrent value is %s." % (name, value)
        )
    answer = get_input(question + (" [Y/n]: " if default else " [y/N]: ")).strip().lower()
    return {"y": True, "n": False}.get(answer, default)


def bazel_version(line):
    """From 2.2 on by `bazel --version`, and a bazel without a version (a distribution's) is let through with a warning."""
    if number(line) >= [2, 2]:
        return subprocess.check_output(["bazel", "--version"]).decode().strip().replace("bazel ", "", 1)
    output = subprocess.check_output(["bazel", "--batch", "--bazelrc=/dev/null", "version"]).decode()
    return re.search(r"Build label: (\S+)", output).group(1)


def check_bazel(line):
    if which("bazel") is None:
        print("Cannot find bazel. Please install bazel.")
        sys.exit(0)
    low, high = BAZEL[line]
    release = bazel_version(line)
    if not re.match(r"\d+(\.\d+)*(-|$)", release):
        print("WARNING: current bazel installation is not a release version.")
        print("Make sure you are running at least bazel %s" % low)
        return
    print("You have bazel %s installed." % release)
    if number(release) < number(low):
        print("Please upgrade your bazel installation to version %s or higher to build TensorFlow!" % low)
        sys.exit(1)
    if number(release) > number(high) and "TF_IGNORE_MAX_BAZEL_VERSION" not in os.environ:
        print("Please downgrade your bazel installation to version %s or lower to build TensorFlow!" % high)
        sys.exit(1)


def cuda(variables, lines, line):
    if yes_or_no(variables, "TF_NEED_TENSORRT", "Do you wish to build TensorFlow with TensorRT support?", False):
        lines.append("build --config=tensorrt")
    questions = [
        (
            "TF_CUDA_VERSION",
            "Please specify the CUDA SDK version you want to use. [Leave empty to default to CUDA 10]: ",
            "10",
        ),
        (
            "TF_CUDNN_VERSION",
            "Please specify the cuDNN version you want to use. [Leave empty to default to cuDNN 7]: ",
            "7",
        ),
        (
            "TF_CUDA_COMPUTE_CAPABILITIES",
            "Please note that each additional compute capability significantly increases your build time and binary size. [Default is: 3.5,7.0]: ",
            "3.5,7.0",
        ),
        (
            "GCC_HOST_COMPILER_PATH",
            "Please specify which gcc should be used by nvcc as the host compiler. [Default is /usr/bin/gcc]: ",
            "/usr/bin/gcc",
        ),
    ]
    if number(line) < [1, 14]:
        questions += [
            (
                "CUDA_TOOLKIT_PATH",
                "Please specify the location where CUDA toolkit is installed. [Default is /usr/local/cuda]: ",
                "/usr/local/cuda",
            ),
            (
                "CUDNN_INSTALL_PATH",
                "Please specify the location where cuDNN library is installed. [Default is /usr/local/cuda]: ",
                "/usr/local/cuda",
            ),
        ]
    if yes_or_no(variables, "TF_CUDA_CLANG", "Do you want to use clang as CUDA compiler?", False):
        lines.append("build --config=cuda_clang")
    for name, question, default in questions:
        lines.append('build --action_env %s="%s"' % (name, value_of(variables, name, question, default)))


def main():
    variables = dict(os.environ)
    release = version()
    line = ".".join(release.split(".")[:2])
    check_bazel(line)
    python = value_of(
        variables,
        "PYTHON_BIN_PATH",
        "Please specify the location of python. [Default is %s]: " % sys.executable,
        sys.executable,
    )
    library = variables.get("PYTHON_LIB_PATH")
    if not library and variables.get("USE_DEFAULT_PYTHON_LIB_PATH") != "1":
        library = (
            get_input("Please input the desired Python library path to use.  Default is [/usr/lib]\n") or "/usr/lib"
        )
    lines = ['build --action_env PYTHON_BIN_PATH="%s"' % python, 'build --action_env PYTHON_LIB_PATH="%s"' % library]
    with open("tools/python_bin_path.sh", "w") as handle:
        handle.write('export PYTHON_BIN_PATH="%s"\n' % python)
    for name, feature, default, text, first, end in FEATURES:
        if number(first) <= number(line) < number(end):
            if yes_or_no(variables, name, "Do you wish to build TensorFlow with %s support?" % feature, default):
                lines.append(text)
                if name == "TF_NEED_CUDA":
                    cuda(variables, lines, line)
            elif name == "TF_NEED_CUDA" and number(line) >= [1, 8]:
                yes_or_no(
                    variables,
                    "TF_DOWNLOAD_CLANG",
                    "Do you wish to download a fresh release of clang? (Experimental)",
                    False,
                )
    if number(line) < [2, 1] and yes_or_no(
        variables, "TF_NEED_MPI", "Do you wish to build TensorFlow with MPI support?", False
    ):
        lines.append("build --define with_mpi_support=true")
    question = 'Please specify optimization flags to use during compilation when bazel option "--config=opt" is specified [Default is -march=native]: '
    for flag in value_of(variables, "CC_OPT_FLAGS", question, "-march=native").split():
        lines.append("build:opt --copt=%s" % flag)
    lines.append("build:opt --define with_default_optimizations=true")
    question = "Would you like to interactively configure ./WORKSPACE for Android builds?"
    if yes_or_no(variables, "TF_SET_ANDROID_WORKSPACE", question, False):
        raise UserInputError("The Android NDK is required.")
    with open(RCFILE, "w") as handle:
        handle.write("".join(text + "\n" for text in lines))
    print("Configuration finished")


if __name__ == "__main__":
    main()
