"""A host that has left YARN: what its ResourceManager reads, and what the next run knows."""

import json

RECORD = "/opt/deeplearning/etc/node_maintenance.json"


def test_the_site_and_this_project_have_a_line_each(host):
    file = host.file("/etc/cluster/yarn.exclude")
    assert file.content_string == "# Hosts of the site\nretired1\ndata1\n"
    assert (file.mode, file.user) == (0o640, "yarn")


def test_the_record_says_which_line_is_ours(host):
    file = host.file(RECORD)
    assert file.mode == 0o600
    assert list(json.loads(file.content_string)["nodes"]) == ["data1"]


def test_yarn_was_refreshed_once_and_not_again_by_the_second_run(host):
    assert host.file("/srv/yarn/refreshed").content_string.splitlines() == ["rmadmin -refreshNodes -g 20 -server"]
    assert host.check_output("readlink /srv/yarn/ws/v1/cluster/nodes") == "/srv/yarn/decommissioned.json"
