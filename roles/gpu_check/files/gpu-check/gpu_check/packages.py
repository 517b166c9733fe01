"""Whether the packages of driver, CUDA, cuDNN and NCCL still hold the files that they installed, as rpm or dpkg answers."""

import re

from gpu_check.questions import Fail, Skip, host_check

SECONDS = 600  # a toolkit's 4 GB are read from the disk
SHOWN = 4
TEXTS = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/")  # small systems are installed without them
# Names in NVIDIA's repositories (cuda-libraries-12-2, libcublas-12-2, libcudnn8, libnccl) and Debian's (libcuda1).
NAMES = re.compile(
    r"nvidia|^(lib)?(cuda|cudnn|nccl|cublas|cufft|cufile|curand|cusolver|cusparse|npp|nvjpeg|nvjitlink|nvfatbin)"
)
VERIFY = {"rpm": ["rpm", "--verify", "--nodeps", "--noscripts"], "dpkg": ["dpkg", "--verify"]}
# "S.5......  c /etc/x", "missing     /usr/lib64/x": what rpm(8) and dpkg(1) print. S: size, 5: digest, L: target of a link; dates,
# owners and modes may differ, because a site may set them. c: a file that the site may change;
# g: one that no package brings; d: documentation.
LINE = re.compile(r"^(missing|[.?S][.?M]\S{5,7})\s+(?:([a-z])\s+)?(/.+)$", re.M)


@host_check
def package_files(host):
    """Packages of driver, CUDA, cuDNN and NCCL hold what they installed"""
    manager = "rpm" if host.exists("/etc/redhat-release") else "dpkg"
    names = packages(host, manager)
    if not names:
        raise Skip("no packages of driver, CUDA, cuDNN or NCCL: archives, .run files or wheels")
    status, output = host.execute(VERIFY[manager] + names, SECONDS)
    if status in (None, -9):
        raise Fail(
            "%s must compare %d packages within %d seconds but did not. Look at the disk: dmesg."
            % (manager, len(names), SECONDS)
        )
    damaged = sorted(
        path
        for state, kind, path in LINE.findall(output)
        if not path.startswith(TEXTS)
        and kind not in ("c", "g", "d")
        and not path.endswith("(Permission denied)")
        and (state == "missing" or set(state) & set("S5L"))
    )
    if damaged:
        raise Fail(sentence(damaged, [owner(host, manager, path) for path in damaged], manager))
    return "%d packages" % len(names)


def packages(host, manager):
    """Installed packages of the GPU layer."""
    if manager == "rpm":
        status, output = host.run("rpm", "-qa", "--qf", "installed %{NAME}\n")
    else:
        status, output = host.run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n")
    if status != 0:
        raise Fail(
            "%s must list the installed packages but ended with %s. Repair its data base."
            % (manager, "status %d" % status if status is not None else "no answer")
        )
    names = re.findall(r"^installed (\S+)$", output, re.M)
    return sorted(set(name for name in names if NAMES.search(name)))


def owner(host, manager, path):
    """The package of a file."""
    if manager == "rpm":
        return host.run("rpm", "-qf", "--qf", "%{NAME}\n", path)[1].split("\n")[0]
    return host.run("dpkg-query", "--search", path)[1].split(":")[0]


def sentence(damaged, owners, manager):
    entries = ["%s (%s)" % pair for pair in zip(damaged[:SHOWN], owners)]
    if len(damaged) > SHOWN:
        entries.append("%d more" % (len(damaged) - SHOWN))
    command = "dnf reinstall (RHEL 7: yum reinstall)" if manager == "rpm" else "apt-get install --reinstall"
    return (
        "Every file must be as its package installed it, but these are missing or have other content: %s. Run %s %s."
        % (
            ", ".join(entries),
            command,
            " ".join(sorted(set(owners))),
        )
    )
