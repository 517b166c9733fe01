"""Questions about an engine image, answered by its own Python (2.7 and 3), as one JSON line.

python engine_probe.py                 what the base has
python engine_probe.py '{"imports": ["tensorflow"], "projects": {"numpy": "1.16.6"}, "libraries": ["libcudart.so.10.0"]}'
"""

from __future__ import absolute_import, division, print_function

import ctypes
import importlib
import json
import os
import platform
import re
import subprocess
import sys
import traceback

DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")  # the host hands them in; an image has none
LIBRARY = re.compile(r"\.so(\.\d+)*$")


def system():
    try:
        with open("/etc/os-release") as handle:
            return re.search(r'^PRETTY_NAME="?([^"\n]*)', handle.read(), re.M).group(1)
    except (AttributeError, IOError, OSError):
        return "unknown"


def base():
    try:
        import pip

        pip_version = pip.__version__
    except ImportError:
        pip_version = ""
    return {
        "python": platform.python_version(),
        "wide": sys.maxunicode >= 0x10FFFF,
        "glibc": platform.libc_ver()[1],
        "system": system(),
        "pip": pip_version,
        "uid": os.getuid(),
    }


def distributions():
    """(project, version, paths) of everything installed."""
    try:
        from importlib.metadata import distributions as listed  # novermin

        for dist in listed():
            yield dist.metadata["Name"], dist.version, [str(dist.locate_file(path)) for path in dist.files or ()]
    except ImportError:  # Python 3.7 and older
        import pkg_resources

        for dist in pkg_resources.working_set:
            name = next((name for name in ("RECORD", "installed-files.txt") if dist.has_metadata(name)), None)
            rows = dist.get_metadata_lines(name) if name else ()
            yield dist.project_name, dist.version, [os.path.join(dist.location, row.split(",")[0]) for row in rows]


def key(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def missing_libraries(paths):
    """Libraries that those of the packages require and nobody has, with the first file that requires them."""
    files = [path for path in paths if LIBRARY.search(path) and os.path.isfile(path)]
    own_names = set(os.path.basename(path) for path in files)
    first_files = {}
    for path in files:
        process = subprocess.Popen(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = process.communicate()[0].decode("utf-8", "replace")
        for name in re.findall(r"^\s*(\S+) => not found", output, re.M):
            if name not in own_names and name not in DRIVER:
                first_files.setdefault(name, path)
    return first_files


def last_line():
    return traceback.format_exc().strip().splitlines()[-1]


def product():
    """The sum of a product of two matrices, in eager or in graph mode: 19 + 22 + 43 + 50."""
    import tensorflow as tf

    total = tf.reduce_sum(tf.matmul([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]))
    if hasattr(total, "numpy"):
        return float(total.numpy())
    with tf.Session() as session:
        return float(session.run(total))


def problems(questions):
    """The problems as sentences; `driver`: whether an import needs the driver's library, which only a host with GPUs has."""
    requested_versions = dict((key(name), version) for name, version in questions["projects"].items())
    sentences, driver, paths = [], False, []
    installed = dict((key(name), (version, files)) for name, version, files in distributions() if name)
    for name in sorted(requested_versions):
        version, files = installed.get(name, ("missing", []))
        paths += files
        if version != requested_versions[name]:
            sentences.append("%s must be %s but is %s" % (name, requested_versions[name], version))
    for name, path in sorted(missing_libraries(paths).items()):
        sentences.append("%s requires %s, which is missing" % (path, name))
    for name in questions["libraries"]:
        try:
            ctypes.CDLL(name)
        except OSError:
            sentences.append("%s must load but does not: %s" % (name, last_line().partition(": ")[2]))
    for name in questions["imports"]:
        try:
            importlib.import_module(str(name))
        except BaseException:
            needs = any(library in traceback.format_exc() for library in DRIVER)
            driver = driver or needs
            if not needs:
                sentences.append("%s must be importable, but is not: %s" % (name, last_line()))
    if not sentences and not driver:
        try:
            answer = product()
        except BaseException:
            answer = last_line()
        if answer != 134.0:
            sentences.append("TensorFlow must multiply two matrices to 134.0, but: %s" % answer)
    return {"problems": sentences, "driver": driver, "uid": os.getuid()}


def main(arguments):
    sys.stdout.flush()
    answer = problems(json.loads(arguments[0])) if arguments else base()
    print("\n" + json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
