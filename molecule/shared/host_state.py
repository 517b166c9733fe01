#!/usr/bin/python3
"""host_state.py: print the state of a host as JSON: every path of /etc, /opt, /usr, /var, /boot and /srv with its type, mode, owner, content
and extended attributes, every package, key and user. Two of them compare a host before the first installation with the host after the removal.
"""

import hashlib
import json
import os
import re
import stat
import subprocess
import sys

ROOTS = ("/boot", "/etc", "/opt", "/srv", "/usr", "/var")
# What changes with every use of the system, whoever uses it; each line has its reason.
IGNORED = (
    r"/etc/(hosts|hostname|resolv\.conf|mtab)$",  # the container engine writes them
    r"/etc/(passwd|shadow|group|gshadow|subuid|subgid)-$",  # copies that useradd keeps of the files before
    r"/etc/\.pwd\.lock$",  # useradd's
    r"/etc/ld\.so\.cache$|/var/cache/ldconfig(/|$)",  # ldconfig's, made of the directories that are compared
    r"/etc/dnf/(modules\.d|protected\.d)(/|$)",  # dnf creates the directories when it first runs
    r"/var/(log|tmp|spool)(/|$)",
    r"/var/cache/(dnf|yum|apt|debconf|man|ldconfig)(/|$)|/var/cache$",  # of package managers
    r"/var/lib/(dnf|yum|rpm|dpkg|apt|systemd|private|misc|pam|nfs)(/|$)|/var/lib$",  # databases; packages are compared below
    r"/usr/lib/sysimage(/|$)",  # rpm's database
    r"/usr/share/(man|info)(/|$)",
    r"/var/lib/dkms/mok\.",  # a key that dkms makes for itself, once
    r"\.pyc$|/__pycache__$",  # Python's own, written by whoever imports first
    r"/var/cache/ansible-bytecode/",  # that of Ansible's modules, which demo/build/sitecustomize.py keeps on nodes and no real host has
    r"/srv/(state-|gpu-packages)",  # of the test
)
IGNORED_PATH = re.compile("|".join(f"^({one})" if one.startswith("/") else f"({one})" for one in IGNORED))

SETTINGS = re.compile(r"nouveau|nvidia|modprobe\.d|deeplearning")


def described(path):
    status = os.lstat(path)
    kind, content = stat.filemode(status.st_mode)[0], ""
    if stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    elif re.match(r"/boot/initramfs", path):
        # Two images of one content differ in their bytes and in the times of their directories.
        listed = [line for line in answer("lsinitrd", path) if SETTINGS.search(line)]
        content = " ".join(sorted(line.split()[-1] for line in listed))
    elif stat.S_ISREG(status.st_mode):
        with open(path, "rb") as handle:
            content = hashlib.sha256(handle.read()).hexdigest()
    attributes = {}
    if not stat.S_ISLNK(status.st_mode):
        attributes = {name: os.getxattr(path, name).hex() for name in sorted(os.listxattr(path))}
    words = [kind, f"{stat.S_IMODE(status.st_mode):o}", f"{status.st_uid}:{status.st_gid}", content]
    return " ".join(words + [f"{name}={value}" for name, value in attributes.items()])


def files():
    descriptions = {}
    for root in ROOTS:
        for top, directories, names in os.walk(root):
            directories[:] = [name for name in directories if not os.path.ismount(os.path.join(top, name))]
            for name in directories + names:
                path = os.path.join(top, name)
                if not IGNORED_PATH.search(path):
                    descriptions[path] = described(path)
    return descriptions


def answer(*argv):
    try:
        completed = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=False)
    except OSError:
        return []
    return sorted(completed.stdout.decode("utf-8", "replace").splitlines())


def main():
    state = {"file " + path: line for path, line in files().items()}
    state["packages"] = answer("rpm", "-qa")
    state["units"] = answer("systemctl", "list-unit-files", "--no-legend", "--no-pager")
    state["failed units"] = answer("systemctl", "list-units", "--failed", "--no-legend", "--plain", "--no-pager")
    json.dump(state, sys.stdout, sort_keys=True)


if __name__ == "__main__":
    main()
