"""Install this project's stack for you, in a session of Cloudera Data Science Workbench: python install.py

Everything comes from your site's mirror, each file is compared with its sha256, and goes below ~/.local. Nothing of the engine changes.
Python 2.7 and 3, standard library only: an engine has nothing else.
"""

from __future__ import absolute_import, division, print_function

import hashlib
import json
import os
import platform
import re
import shutil
import signal
import site
import ssl
import subprocess
import sys
import tempfile
import threading

try:
    from urllib.request import urlopen  # novermin
except ImportError:  # Python 2.7
    from urllib2 import urlopen  # novermin

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 3600  # for each run of pip
IMPORT_SECONDS = 300
ROOM = 4  # times the wheels' size, for the files that they become
CHECK = (
    "Check that the mirror serves it (curl -I %s), and proxy variables (no_proxy must name the mirror's host if a proxy does not reach "
    "it)."
)
SECRET = re.compile(r"//[^/@\s]+@")


class Refusal(Exception):
    """What is required, what was found, what to do."""


def settings():
    with open(os.path.join(HERE, "stack.json")) as handle:
        return json.load(handle)


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def check(config):
    """Refuse before anything is installed."""
    python_version = "%d.%d" % sys.version_info[:2]
    if python_version != config["python"]:
        raise Refusal(
            "%s requires Python %s, but this is Python %s (%s). Run it with python%s, or start a session whose engine has it."
            % (config["stack"], config["python"], python_version, sys.executable, config["python"])
        )
    if sys.version_info[0] == 2 and sys.maxunicode < 0x10FFFF:
        raise Refusal(
            "%s requires a Python 2.7 with wide characters (cp27mu), but %s has narrow ones. Use the engine's Python 3."
            % (config["stack"], sys.executable)
        )
    library, glibc = platform.libc_ver()
    if config.get("glibc") and library == "glibc" and numbers(glibc) < numbers(config["glibc"]):
        raise Refusal(
            "%s requires glibc %s or later, but this engine has %s. Use an older stack, or an engine with a newer system."
            % (config["stack"], config["glibc"], glibc)
        )
    if not site.ENABLE_USER_SITE:
        raise Refusal(
            "Packages in ~/.local must be visible, but this Python does not look there (%s). Unset PYTHONNOUSERSITE, and use the "
            "engine's Python, not one of a virtual environment." % sys.executable
        )
    base = site.getuserbase()
    directory = base
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    if not os.access(directory, os.W_OK):
        raise Refusal("%s must be yours to write, but is not. Set HOME, or PYTHONUSERBASE." % base)
    status = os.statvfs(directory)
    free, required_mb = status.f_bavail * status.f_frsize >> 20, config["megabytes"] * ROOM
    if free < required_mb:
        raise Refusal(
            "%s must have %d MB free, but has %d MB. Remove what you no longer need, and run again."
            % (directory, required_mb, free)
        )


def run(argv, seconds, shown=True):
    """(status, last lines) of a program, which ends within this time. No password of a proxy or address is printed."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=os.setsid)
    timer = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    last = []
    try:
        for line in iter(process.stdout.readline, b""):
            text = SECRET.sub("//...@", line.decode("utf-8", "replace").rstrip())
            last = (last + [text])[-20:]
            if shown:
                print(text)
                sys.stdout.flush()
        process.wait()
    finally:
        timer.cancel()
        timer.join()  # Python 2.7 complains about a thread that still waits when it ends
    return process.returncode, last


def reason(lines):
    """The line of pip's output that names the cause: pip prints sentences or, an old one, a traceback."""
    for pattern in (r"ERROR: ", r"\w+(Error|Mismatch|Exception): ", r".*HASHES", r".*\S"):
        matches = [line.strip() for line in lines if re.match(pattern, line)]
        if matches:
            return (matches[0] if pattern == "ERROR: " else matches[-1]).rstrip(".")[:300]
    return "no output"


def make_wheels(config, directory):
    """Wheels of source distributions, whose setup.py does not run: source_wheels has a recipe for each."""
    import source_wheels  # beside this file, in a project

    for source in config["sources"]:
        address, path = "%s/wheels/%s" % (config["mirror"], source["file"]), os.path.join(directory, source["file"])
        try:
            context = ssl.create_default_context(cafile=config["ca"] or None)
            answer = urlopen(address, timeout=60, context=context)  # the mirror's  # novermin
            with open(path, "wb") as handle:
                handle.write(answer.read(source["size"] + 1))
        except (IOError, ValueError) as problem:
            raise Refusal("The mirror must serve %s, but: %s. %s" % (address, problem, CHECK % config["mirror"]))
        with open(path, "rb") as handle:
            if hashlib.sha256(handle.read()).hexdigest() != source["sha256"]:
                raise Refusal("%s must have the sha256 of the lock, but has not. Nothing was installed." % address)
        try:
            source_wheels.make(source["file"], source["sha256"], path, directory)
        except source_wheels.NoWheel as problem:
            raise Refusal("%s. Write the project again: scripts/stack cdsw-project" % problem)


def pip_install(name, config, wheels):
    argv = [sys.executable, "-m", "pip", "install", "--user", "--no-deps", "--no-index", "--require-hashes"]
    argv += [
        "--only-binary",
        ":all:",
        "--find-links",
        wheels,
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--timeout",
        "60",
        "--requirement",
        os.path.join(HERE, name),
    ]
    if config.get("ca"):
        argv += ["--cert", config["ca"]]
    status, last = run(argv, SECONDS)
    if status == 0:
        return
    problem = "it did not end within %d s" % SECONDS if status == -signal.SIGKILL else reason(last)
    raise Refusal(
        "pip must install %s from %s, but ended with status %d: %s. %s Run again: what is there is not fetched again."
        % (name, config["mirror"], status, problem, CHECK % config["mirror"])
    )


def check_imports(config):
    """Import in a new process what the stack is for: this one may have other versions loaded."""
    for module in config["imports"]:
        status, last = run([sys.executable, "-c", "import " + module], IMPORT_SECONDS, shown=False)
        if status:
            message = last[-1] if last else "it ended with status %s" % status
            cuda = (
                " A GPU stack requires CUDA in the engine's image, or a CPU stack: see README.md."
                if ".so" in message
                else ""
            )
            raise Refusal("%s must be importable, but is not: %s.%s" % (module, message.rstrip("."), cuda))


def hint_about_dask(config):
    """TensorFlow 1's contrib.learn imports dask.dataframe if it is installed; one that is older than its pandas breaks that import."""
    if numbers(config["tensorflow"])[0] != 1:
        return
    installed, _ = run([sys.executable, "-c", "import dask"], IMPORT_SECONDS, shown=False)
    broken, last = run([sys.executable, "-c", "import dask.dataframe"], IMPORT_SECONDS, shown=False)
    if installed == 0 and broken != 0:
        # The last for Python 2.7, whose locks need exact versions.
        dask = "dask==1.2.2" if config["python"] == "2.7" else "dask"
        print(
            "The engine's dask does not fit its pandas (%s), and tf.contrib of TensorFlow 1 imports it. Upgrade dask: ask for a lock with it "
            "(scripts/stack lock %s --extra %s --stacks inventories/SITE/stacks), or, if an index is reached: pip install --user --upgrade %s"
            % (last[-1] if last else "no reason", config["stack"], dask, dask)
        )


def main():
    config, wheels = settings(), tempfile.mkdtemp()
    try:
        check(config)
        make_wheels(config, wheels)
        if os.path.exists(os.path.join(HERE, "requirements-pip.txt")):
            pip_install("requirements-pip.txt", config, wheels)  # the engine's pip may be too old for the other wheels
        pip_install("requirements.txt", config, wheels)
        check_imports(config)
    except Refusal as refusal:
        sys.stderr.write("install.py: %s\n" % refusal)
        return 1
    finally:
        shutil.rmtree(wheels)
    hint_about_dask(config)
    print("%s is installed in %s." % (config["stack"], site.getuserbase()))
    print("Start a new session: this one keeps the packages that it has imported.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
