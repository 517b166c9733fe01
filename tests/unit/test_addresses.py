"""The mirror's index: what is refused, by name, without a password in the sentence."""

import pytest

from hadoop_dl.data.addresses import mirror_index_problem

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
