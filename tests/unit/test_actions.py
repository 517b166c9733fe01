"""The action plugins signed_repository, pinned_packages, verified_file and verified_archive, on a host that is a dictionary of files and a key ring."""

import hashlib
import re
import subprocess
from typing import Any, ClassVar

import pytest
from ansible.errors import AnsibleActionFail
from package_host import HOLDER, KEYS, PLUGINS, Host, install

from hadoop_dl.hosts import os_packages
from hadoop_dl.hosts.actions import HostAction


@pytest.fixture
def host() -> Host:
    return Host()


def trusted(key: str) -> str:
    return f"gpg-pubkey-{KEYS[key][-8:].lower()}"


def define(host: Host, name: str, key: str = "site.key", **args: Any) -> dict[str, Any]:
    url = "http://mirror01/rpm"
    return host.run("signed_repository", name=f"deeplearning-{name}", manager="dnf", url=url, key=key, **args)


def remove(host: Host, name: str) -> None:
    host.run("signed_repository", name=f"deeplearning-{name}", manager="dnf", state="absent")


def test_a_key_that_came_with_the_last_repository_goes_with_it(host):
    define(host, "cuda")
    host.ring.add(trusted("site.key"))  # dnf took it in
    define(host, "cudnn")
    remove(host, "cuda")
    assert host.ring == {trusted("site.key")}
    remove(host, "cudnn")
    assert (host.ring, host.files) == (set(), {})


@pytest.mark.parametrize("order", [("cuda", "cudnn"), ("cudnn", "cuda")])
def test_a_key_that_rpm_trusted_before_stays(host, order):
    host.ring.add(trusted("site.key"))
    define(host, "cuda")
    define(host, "cudnn")
    for name in order:
        remove(host, name)
    assert (host.ring, host.files) == ({trusted("site.key")}, {})


def test_two_keys_are_valid_during_a_change_and_the_old_one_loses_its_trust_at_the_end(host):
    define(host, "cuda")
    define(host, "cudnn")
    host.ring = {trusted("site.key")}
    define(host, "cuda", key="site.key+other.key")
    host.ring.add(trusted("other.key"))  # dnf took it in
    define(host, "cuda", key="other.key")
    assert host.ring == {trusted("site.key"), trusted("other.key")}, "cudnn still has the old one"
    define(host, "cudnn", key="other.key")
    assert host.ring == {trusted("other.key")}
    for name in ("cuda", "cudnn"):
        remove(host, name)
    assert (host.ring, host.files) == (set(), {})


@pytest.mark.parametrize("before", ["site.key", "other.key"])
def test_a_key_of_two_that_rpm_trusted_before_stays_through_a_change_and_a_removal(host, before):
    host.ring = {trusted(before)}
    define(host, "cuda")
    define(host, "cuda", key="site.key+other.key")
    host.ring |= {trusted("site.key"), trusted("other.key")}
    define(host, "cuda", key="other.key")
    assert host.ring == {trusted(before), trusted("other.key")}
    remove(host, "cuda")
    assert (host.ring, host.files) == ({trusted(before)}, {})


def test_a_removal_that_was_killed_after_the_key_left_its_file_keeps_what_rpm_trusted_before(host):
    host.ring = {trusted("site.key")}
    define(host, "cuda")
    for path in [path for path in host.files if not path.endswith(".trusted-before")]:
        del host.files[path]
    remove(host, "cuda")
    assert (host.ring, host.files) == ({trusted("site.key")}, {})


def test_a_key_goes_although_a_repository_with_another_key_is_left(host):
    define(host, "cuda")
    define(host, "cudnn", key="other.key")
    host.ring |= {trusted("site.key"), trusted("other.key")}
    remove(host, "cuda")
    assert host.ring == {trusted("other.key")}


def test_a_repository_that_check_mode_did_not_define_cannot_be_asked(host):
    answer = define(host, "cuda", check=True)
    assert (answer["changed"], answer["repository"]["usable"]) == (True, False)
    define(host, "cuda")
    assert define(host, "cuda")["repository"]["usable"]


@pytest.mark.parametrize(
    ("given", "checked"), [({}, False), ({"metadata_signed": "true"}, True), ({"metadata_signed": False}, False)]
)
def test_signed_metadata_is_checked_where_the_site_has_it(host, given, checked):
    define(host, "cuda", **given)
    (args,) = [args for name, args in host.modules if name == "yum_repository"]
    assert (args["gpgcheck"], args["repo_gpgcheck"]) == (True, checked)
    assert args["skip_if_unavailable"] is False  # RHEL 8 and 9 would leave it out in silence


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://mirror01:8900/rpm/el9", "/etc/pki/site-ca.pem"),
        ("http://mirror01:8900/rpm/el9", None),
        ("https://developer.download.nvidia.com/rpm", None),  # its certificate is not of the site's authority
    ],
)
def test_a_repository_of_the_mirror_is_read_with_the_sites_authority(host, url, expected):
    host.variables = {"mirror_url": "https://mirror01:8900", "mirror_ca": "/etc/pki/site-ca.pem"}
    host.run("signed_repository", name="deeplearning-cuda", manager="dnf", url=url, key="site.key")
    (definition,) = [args for name, args in host.modules if name == "yum_repository"]
    assert definition.get("sslcacert") == expected


def test_a_repository_without_a_key_is_refused():
    with pytest.raises(AnsibleActionFail, match="unsigned packages are not installed"):
        define(Host(), "cuda", key="")


@pytest.mark.parametrize("args", [{"name": "cuda", "manager": "dnf"}, {"name": "deeplearning-x", "manager": "zypper"}])
def test_misuse_says_what_is_needed(args):
    words = r"signed_repository needs a name that begins with deeplearning-.*found"
    with pytest.raises(AnsibleActionFail, match=words):
        Host().run("signed_repository", **args)


def test_packages_are_asked_for_in_one_transaction_that_may_not_touch_others(host):
    repository = {"name": "deeplearning-cuda", "url": "u", "key": "k", "key_file": "/k", "usable": True}
    names = [{"name": "a", "version": "1.2"}, "b"]
    assert install(host, names=names, exclude=["kernel"], repository=repository)["changed"]
    ((name, args),) = host.modules
    assert (name, args["name"], args["exclude"]) == ("dnf", ["a-1.2", "b"], ["kernel"])
    assert args["enablerepo"] == ["deeplearning-cuda"]


def test_a_refused_transaction_leaves_no_key_that_it_brought(host):
    host.ring.add(trusted("site.key"))
    host.fails["dnf"], host.imports = "Failed to validate GPG signature for a-1.2", trusted("other.key")
    with pytest.raises(AnsibleActionFail, match="Nothing was installed"):
        install(host)
    assert host.ring == {trusted("site.key")}


UNSIGNED = [{"name": "site", "file": "/etc/yum.repos.d/site.repo"}, {"name": "made", "file": ""}]


@pytest.mark.parametrize("manager", ["dnf", "yum"])
@pytest.mark.parametrize("repository", [{}, {"name": "deeplearning-cuda", "url": "u", "key": "k", "key_file": ""}])
def test_nothing_comes_from_a_repository_that_checks_no_signatures(host, manager, repository):
    host.unsigned = UNSIGNED
    install(host, manager=manager, repository=repository)
    ((name, args),) = host.modules
    assert (name, args["disablerepo"], host.queries) == (manager, ["site", "made"], 1)


@pytest.mark.parametrize("allowed", [None, ["site-baseos"]])
def test_the_repositories_that_a_site_names_are_the_only_ones(host, allowed):
    if allowed:
        host.variables["package_repositories"] = allowed
    install(host, manager="dnf")
    assert host.allowed == allowed


@pytest.mark.parametrize("manager", ["dnf", "yum"])
@pytest.mark.parametrize("url", ["", "http://mirror01/rpm"])
@pytest.mark.parametrize("unsigned", [[], UNSIGNED])
def test_a_role_asks_a_host_once_which_repositories_check_no_signatures(host, manager, url, unsigned):
    """It defines its repository, and looks for and installs several versions from it."""
    host.unsigned = unsigned
    source = {"manager": manager, "url": url, "key": "site.key"}
    repository = host.run("signed_repository", name="deeplearning-cuda", **source)["repository"]
    host.modules.clear()
    for names in ([], ["b"]):
        with pytest.raises(AnsibleActionFail, match="no version of it"):
            install(host, manager=manager, repository=repository, names=["a", *names], state="available")
        install(host, manager=manager, repository=repository, names=["a", *names])
    assert host.queries == 1
    unsigned_names = [entry["name"] for entry in unsigned]
    assert [args["disablerepo"] for _, args in host.modules] == [unsigned_names, unsigned_names]
    options = [[word for word in argv if word.startswith("--disablerepo")] for argv in host.asked if "list" in argv]
    assert options == [[f"--disablerepo={name}" for name in unsigned_names]] * 2


def test_a_trial_defines_its_repository_in_one_directory_and_trusts_no_key(host):
    host.files["/etc/yum.repos.d/deeplearning-cuda.repo"] = "of an earlier run"
    before = dict(host.files)
    answer = define(host, "cuda", state="trial")
    place = os_packages.TRIAL
    assert {path for path in host.files if path not in before} == {
        f"{place}/key",
        f"{place}/deeplearning-cuda-plan.repo",
    }
    assert (answer["repository"]["directory"], answer["repository"]["name"]) == (place, "deeplearning-cuda-plan")
    assert (answer["changed"], host.ring) == (False, set())
    ended = define(host, "cuda", state="ended")
    assert ("file", {"path": place, "state": "absent"}) == host.modules[-1]
    assert not ended["changed"]


@pytest.mark.parametrize("manager", os_packages.MANAGERS)
def test_a_trial_answers_the_solution_of_a_transaction(host, manager):
    host.solved = "Dependencies resolved.\nInstalling:\n a   noarch   1.2-1   r   5 k\n\nOperation aborted.\n"
    repository = {"name": "deeplearning-x-plan", "directory": "/t", "unsigned": []}
    answer = install(host, state="solvable", manager=manager, repository=repository)
    assert answer["solution"]["comes"] == ["a-1.2-1.noarch"]
    assert not answer["changed"]


@pytest.mark.parametrize("manager", ["dnf", "yum"])
def test_a_package_that_only_an_unsigned_repository_has_is_refused_with_its_name(host, manager):
    host.unsigned = UNSIGNED
    with pytest.raises(
        AnsibleActionFail,
        match=r"no version of it.* of data1 were not used, because they check no signatures or are not in package_repositories: site \(/etc/yum.repos.d/site.repo\), made\. "
        r"Set gpgcheck=1 and gpgkey there, or set the role's repository_url and repository_key",
    ):
        install(host, manager=manager, state="available")
    assert [argv for argv in host.asked if {"--disablerepo=site", "--disablerepo=made"} < set(argv)] == host.asked
    assert host.modules == []


def test_a_dependency_that_only_an_unsigned_repository_has_is_told_with_its_name(host):
    host.unsigned = UNSIGNED
    host.fails["dnf"] = "Depsolve Error occurred: nothing provides dkms"
    with pytest.raises(
        AnsibleActionFail, match=r"nothing provides dkms.*check no signatures or are not in package_repositories: site"
    ):
        install(host)


def test_a_host_whose_repositories_cannot_be_read_installs_nothing(host):
    host.module = lambda module, **args: {"failed": True, "msg": "dnf must be able to read its repositories"}  # type: ignore[method-assign]
    with pytest.raises(AnsibleActionFail, match="must be able to read its repositories"):
        install(host)


def test_the_holder_of_a_lock_that_was_taken_in_between_is_named(host):
    host.fails["dnf"] = "dnf lockfile is held by another process"
    answers = iter(["", HOLDER])
    host.module = lambda module, **args: (  # type: ignore[method-assign]
        {"holder": next(answers)} if module == "package_lock_info" else Host.module(host, module, **args)
    )
    with pytest.raises(
        AnsibleActionFail, match=f"requires the lock of dnf on data1, but {HOLDER}; dnf reports: dnf lockfile"
    ):
        install(host)


@pytest.mark.parametrize("manager", ["dnf", "yum"])
def test_an_installation_waits_for_the_lock_and_then_names_its_holder(host, manager, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    host.locked = 3
    assert install(host, manager=manager)["changed"]
    assert clock == [15]
    host.locked, host.modules = 1000, []
    with pytest.raises(AnsibleActionFail, match=f"{HOLDER} for more than 120 s. Nothing was installed"):
        install(host, manager=manager)
    assert 120 <= clock[0] - 15 <= 130
    assert host.modules == []


def test_where_check_mode_has_no_repository_an_installation_is_a_change_and_a_question_is_none():
    repository = {"usable": False}
    assert install(Host(), repository=repository)["changed"] is True
    assert install(Host(), repository=repository, state="available")["changed"] is False


FILE = {
    "source": "http://mirror01/x.run",
    "path": "/opt/deeplearning/downloads/x.run",
    "title": "The .run file",
    "remedy": "Fetch it again.",
}


def test_a_file_stays_only_with_its_sha256(host):
    words = r"must have the sha256 00 but http://mirror01/x.run has [0-9a-f]{64}; it was not used"
    with pytest.raises(AnsibleActionFail, match=words):
        host.run("verified_file", **FILE, sha256="00")
    assert host.files == {}
    host.run("verified_file", **FILE, sha256=hashlib.sha256(b"fetched").hexdigest())
    assert host.files == {FILE["path"]: "fetched"}


def test_a_download_that_fails_is_described_without_the_addresss_password(host):
    host.fails["fetch_file"] = "http://mirror01/x.run must arrive within 3600 s, but only 10 bytes did"
    with pytest.raises(AnsibleActionFail, match=r"from http://mirror01/x.run to .* on data1.*within 3600 s") as caught:
        host.run("verified_file", **{**FILE, "source": "http://svc:canary@mirror01/x.run"}, sha256="00")
    assert "canary" not in str(caught.value)


class Ssh(HostAction):
    """As Ansible's ssh runs a command: without input on a terminal (`ssh -tt`), and with a line of its own at the end."""

    pipelining = True

    def _is_pipelining_enabled(self, module_style: str, wrap_async: bool = False) -> bool:
        return self.pipelining

    def _low_level_execute_command(self, cmd: str, in_data: bytes | None = None, **_: Any) -> dict[str, Any]:
        argv = ["/bin/sh", "-c", cmd]
        last = ""
        if not in_data:
            argv = ["script", "--quiet", "--return", "--command", cmd, "/dev/null"]
            last = "Shared connection to data1 closed.\r\n"
        completed = subprocess.run(argv, input=in_data or b"", capture_output=True, timeout=20, check=False)
        return {
            "rc": completed.returncode,
            "stdout": completed.stdout.decode(),
            "stderr": completed.stderr.decode() + last,
        }


def action_over_ssh(pipelining: bool) -> Ssh:
    action = Ssh.__new__(Ssh)
    action.variables, action.pipelining = {"inventory_hostname": "data1"}, pipelining
    return action


def test_a_command_that_does_not_end_is_ended_and_named():
    """As `dnf list` behind the lock of another dnf, which waits for ever."""
    action = action_over_ssh(pipelining=True)
    assert action.command(["echo", "a b"])["stdout"] == "a b\n"
    with pytest.raises(AnsibleActionFail, match="sleep 30 must answer on data1, but did not end within 1 s"):
        action.command(["sleep", "30"], 1)


# As dnf does: a terminal that can gets colours. What it printed over SSH for `dnf list`.
DNF = r"""
name=dkms.noarch
[ ! -t 1 ] || [ "$TERM" = dumb ] || name=$(printf '\033[1m\033[36m%s\033(B\033[m' $name)
printf 'Available Packages\n%s   3.1.8-1.el7   gpu\n' "$name"
"""


@pytest.mark.parametrize("pipelining", [True, False])
def test_what_a_command_prints_over_ssh_has_no_colours_and_no_carriage_returns(pipelining):
    answer = action_over_ssh(pipelining).command(["sh", "-c", DNF])
    assert answer["stdout"] == "Available Packages\ndkms.noarch   3.1.8-1.el7   gpu\n"
    assert os_packages.offers(answer["stdout"]) == {"dkms": ["3.1.8-1.el7"]}
    assert answer["stderr"] == ""


ARCHIVE = {**FILE, "path": "/usr/local/cuda-12.2/cudnn-8", "download": FILE["path"]}


def test_an_archive_that_is_there_is_not_fetched(host):
    host.files["/usr/local/cuda-12.2/cudnn-8/.deeplearning.json"] = "aa"
    assert host.run("verified_archive", **ARCHIVE, sha256="aa")["changed"] is False
    assert host.modules == []


def test_an_archive_that_cannot_be_unpacked_is_told_and_does_not_stay(host):
    host.fails["placed_tree"] = "tar ended with status 2: No space left on device"
    words = r" on data1: tar ended with status 2: No space left on device"
    with pytest.raises(AnsibleActionFail, match=words):
        host.run("verified_archive", **ARCHIVE, sha256=hashlib.sha256(b"fetched").hexdigest())
    assert host.files == {}


class Exchange(Host):
    """A host on which the shells of dnf and yum end with status 0 whatever happens; rpm says what is installed before and after."""

    planned = (
        "Dependencies resolved.\nInstalling:\n a\n    x86_64  3:1.2-1.el9  cuda  2 M\n"
        "Removing:\n b  x86_64  1.1-1  @System  1 M\nOperation aborted.\n"
    )
    done: ClassVar = {"stdout": "Error: nothing provides dkms", "stderr": "", "rc": 0}

    def __init__(self, installed: str) -> None:
        super().__init__()
        self.installed = ["package a-1.2 is not installed\n", installed]
        self.limits: list[int] = []

    def command(self, argv: list[str], seconds: int = 120, left: str = "") -> dict[str, Any]:
        if argv[0] == "sh":
            self.asked.append(argv)
            self.limits.append(seconds)
            return self.done if "--assumeyes" in argv else {"stdout": self.planned, "stderr": "", "rc": 0}
        if argv[:2] == ["rpm", "--query"] and "--queryformat" not in argv and "--all" not in argv:
            return {"stdout": self.installed.pop(0), "stderr": "", "rc": 0}
        return super().command(argv)

    def shells(self) -> list[list[str]]:
        return [argv for argv in self.asked if argv[0] == "sh"]


def test_what_leaves_for_another_package_goes_in_its_transaction():
    host = Exchange("a-1.2-1.x86_64\n")
    repository = {"name": "deeplearning-cuda", "url": "u", "key": "k", "key_file": "", "usable": True}
    assert install(host, remove=["b", "c"], exclude=["kernel"], repository=repository)["changed"]
    query, transaction = host.shells()
    assert "--assumeno" in query
    options = ["--assumeyes", "--enablerepo=deeplearning-cuda", "--setopt=exit_on_lock=1", "--exclude=kernel"]
    options += ["--setopt=install_weak_deps=False", "--setopt=clean_requirements_on_remove=False"]
    assert transaction[4:] == ["remove b c\ninstall a-1.2\nrun", "dnf", *options]
    assert host.modules == []


FILTERED = (
    "All matches were filtered out by exclude filtering for argument: a-1.2\nRemoving:\n b x86_64 1.1-1 @System 1 M\n"
)
DEPENDENT = "Removing dependent packages:\n a x86_64 3:1.1-1.el9 @cuda 2 M\n"


# Where a line of the script fails, the shell logs it and goes on to the next (dnf/cli/commands/shell.py, yum's shell.py).
@pytest.mark.parametrize(
    ("planned", "why"),
    [
        (FILTERED, r"would not install a-1\.2"),
        (DEPENDENT, r"would not install a-1\.2; it would also remove .*: a"),
        ("Installing:\n a-libs x86_64 1.2-1 cuda 2 M\n", r"would not install a-1\.2"),
        ("Error: \n Problem: nothing provides dkms\n", "nothing provides dkms"),
    ],
)
def test_an_exchange_that_would_leave_a_part_out_is_refused_before_anything_is_removed(planned, why):
    host = Exchange("")
    host.planned = f"{planned}Operation aborted.\n" if "Error" not in planned else planned
    with pytest.raises(AnsibleActionFail, match=why):
        install(host, remove=["b"])
    assert ["--assumeno" in argv for argv in host.shells()] == [True]


def test_a_transaction_that_cannot_be_solved_is_refused_and_nothing_is_done():
    host = Exchange("")
    host.planned = host.done["stdout"]
    with pytest.raises(AnsibleActionFail, match=r"A 1.2 must be one .*nothing provides dkms.*Nothing was changed"):
        install(host, state="solvable", remove=["b"])
    assert (host.modules, "--assumeyes" in str(host.asked)) == ([], False)


def test_an_exchange_that_did_not_happen_is_a_failure_with_its_words():
    host = Exchange("package a-1.2 is not installed\n")
    with pytest.raises(AnsibleActionFail, match=r"did not install a-1\.2; Error: nothing provides dkms"):
        install(host, remove=["b"])


class Ended(Host):
    """A host on which a transaction of rpm was ended between a new package and the old one: both are in its data base."""

    def command(self, argv: list[str], seconds: int = 120, left: str = "") -> dict[str, Any]:
        if "%{NAME}.%{ARCH}\\n" in argv:
            assert "kernel-devel" not in argv  # several of them may stay
            return {"stdout": "a.x86_64\nb.i686\nb.x86_64\na.x86_64\n", "stderr": "", "rc": 0}
        return super().command(argv, seconds, left)


def test_a_package_in_two_versions_is_named_before_anything_is_installed():
    host = Ended()
    names = [{"name": name, "version": "1"} for name in ("a", "kernel-devel", "b")]
    with pytest.raises(AnsibleActionFail, match=r"a in more than one version.* dnf remove --duplicates"):
        install(host, names=names)
    assert host.modules == []


def test_an_exchange_has_the_time_that_the_build_of_a_module_takes():
    host = Exchange("a-1.2-1.x86_64\n")
    host.unsigned = UNSIGNED
    install(host, remove=["b"])
    assert host.limits == [600, 3600]
    assert all("--disablerepo=site" in argv for argv in host.shells())


def test_in_check_mode_an_exchange_is_a_change_and_runs_nothing():
    host = Exchange("")
    assert install(host, remove=["b"], check=True)["changed"]
    assert host.shells() == []


def test_every_repository_of_a_role_can_have_signed_metadata():
    """What a man in the middle could do without: show an old or shortened list of packages that are signed."""
    files = [path for path in (PLUGINS.parents[1] / "roles").glob("*/tasks/*.yml")]
    definitions = [path for path in files if re.search(r"signed_repository:\n.*?\burl:", path.read_text(), re.S)]
    assert len(definitions) >= 4
    assert [path.parts[-3:] for path in definitions if "metadata_signed:" not in path.read_text()] == []
