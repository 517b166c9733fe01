"""gpu-check's question about files of packages, with the forms in which rpm and dpkg answer."""

import pytest
from gpu_check_hosts import ask, check, host

RPMS = {
    "rpm -qa": (0, "installed bash\ninstalled libcudnn8\ninstalled nvidia-driver-cuda\ninstalled libcublas-12-2\n"),
    "rpm -qf": (0, "libcudnn8\n"),
}
DEBS = {
    "dpkg-query -W": (0, "installed bash\ninstalled libcuda1\nconfig-files nvidia-alternative\n"),
    "dpkg-query --search": (0, "libcuda1:amd64: /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"),
}


@pytest.mark.parametrize(
    ("said", "outcome", "words"),
    [
        ("", "PASS", "3 packages"),
        (".......T.    /usr/lib64/libcudnn.so.8.9.7\n", "PASS", "3 packages"),  # only its date
        ("S.5....T.  c /etc/modprobe.d/nvidia.conf\n", "PASS", "3 packages"),
        (".M...UG..  g /var/log/nvidia\nmissing    c /etc/OpenCL/vendors/nvidia.icd\n", "PASS", "3 packages"),
        ("missing     /usr/lib64/libcudnn.so.8 (Permission denied)\n", "PASS", "3 packages"),  # asked by a user
        (
            "S.5....T.    /usr/lib64/libcudnn.so.8.9.7\n",
            "FAIL",
            "content: /usr/lib64/libcudnn.so.8.9.7 (libcudnn8). Run dnf reinstall (RHEL 7: yum reinstall) libcudnn8.",
        ),
        ("..5....T.    /usr/lib64/a b\n", "FAIL", "/usr/lib64/a b (libcudnn8)"),
        ("....L....    /usr/lib64/libcudnn.so\n", "FAIL", "/usr/lib64/libcudnn.so (libcudnn8)"),
        ("missing     /usr/lib64/libcudnn.so.8\n", "FAIL", "/usr/lib64/libcudnn.so.8 (libcudnn8)"),
        (
            "".join(f"S.5......    /usr/lib64/{number}\n" for number in range(9)),
            "FAIL",
            "/usr/lib64/3 (libcudnn8), 5 more. ",
        ),
    ],
)
def test_changed_content_of_rpms_fails_with_the_command_that_restores_it(tmp_path, said, outcome, words):
    machine = host(tmp_path, answers={**RPMS, "rpm --verify": (1 if said else 0, said)})
    check(ask("package_files", machine), outcome, words)


def test_changed_content_of_debs_fails_with_the_command_that_restores_it(tmp_path):
    def asked(status, *lines):
        machine = host(tmp_path, answers={**DEBS, "dpkg --verify": (status, "\n".join([*lines, ""]))})
        (tmp_path / "etc/redhat-release").unlink()
        return ask("package_files", machine)

    library = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    assert asked(0) == ("PASS", "1 packages")
    documents = ("??5??????   /usr/share/doc/libcuda1/copyright", "??5?????? c /etc/nvidia/nvidia-load.conf")
    words = f"content: {library} (libcuda1). Run apt-get install --reinstall libcuda1."
    check(asked(2, *documents, f"??5??????   {library}"), "FAIL", words)


def test_only_packages_of_the_gpu_layer_are_read(tmp_path):
    commands = []
    machine = host(tmp_path, answers=RPMS)
    execute = machine.execute
    machine.execute = lambda argv, seconds=None: commands.append(list(argv)) or execute(argv)
    ask("package_files", machine)
    [command] = [argv for argv in commands if "--verify" in argv]
    assert command[4:] == ["libcublas-12-2", "libcudnn8", "nvidia-driver-cuda"]


@pytest.mark.parametrize(
    ("answers", "outcome", "words"),
    [
        ({"rpm -qa": (0, "installed bash\n")}, "SKIP", "no packages"),
        ({"rpm -qa": (1, "rpmdb: damaged")}, "FAIL", "ended with status 1. Repair"),
        ({"rpm -qa": (None, "")}, "FAIL", "ended with no answer. Repair"),
        ({**RPMS, "rpm --verify": (-9, "")}, "FAIL", "within 600 seconds but did not"),
    ],
)
def test_what_cannot_be_compared_is_told(tmp_path, answers, outcome, words):
    check(ask("package_files", host(tmp_path, answers=answers)), outcome, words)
