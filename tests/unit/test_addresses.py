"""The mirror's index and directory: what is refused, by name, without a password in the sentence."""

import pytest

from hadoop_dl.data.addresses import mirror_index_problem, own_directory_problem


@pytest.mark.parametrize("root", ["/srv/deeplearning-mirror", "/data/mirror", "/mnt/disk1/mirror/", "/mirror"])
def test_directories_that_can_be_a_mirror(root):
    assert own_directory_problem("mirror_root", root) == ""


@pytest.mark.parametrize(
    "root",
    [
        *("/", "//", "/srv", "/srv/", "/home", "/home/me/mirror", "/root", "/etc", "/usr/share/mirror", "/tmp/x"),
        *("/srv/../etc", "/opt/deeplearning/envs", "/opt/cloudera/parcels", "/var/lib/docker/x"),
        *("srv/mirror", "", None),
    ],
)
def test_directories_of_others_are_refused(root):
    assert own_directory_problem("mirror_root", root).startswith("mirror_root must ")


ARTIFACTORY = "https://artifactory.example.com/artifactory/api/pypi/deeplearning/simple"
LOGIN = {"user": "svc", "password": "s3cret"}


@pytest.mark.parametrize(
    ("url", "login", "words"),
    [
        ("", {}, ""),
        (ARTIFACTORY, LOGIN, ""),
        ("http://nexus:8081/repository/deeplearning/simple", {}, ""),
        ("http://nexus:8081/repository/deeplearning/simple", LOGIN, "must begin with https://"),
        ("", LOGIN, "mirror_index_url, but that is not set"),
        (ARTIFACTORY, {"user": "svc"}, "must have user and password"),
        (ARTIFACTORY, {"token": "s3cret"}, "must have user and password"),
    ],
)
def test_a_login_is_for_an_index_with_https(url, login, words):
    problem = mirror_index_problem(url, login)
    assert words in problem
    assert bool(words) == bool(problem)
    assert "s3cret" not in problem
