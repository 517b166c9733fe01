"""The report's page: complete without a browser, and sorted, filtered and read in a real one (Chromium without a window)."""

import copy
import html
import http.server
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import browser
import loopback
import pytest

from hadoop_dl.hosts import report_page
from hadoop_dl_dev import report_sample

HERE = Path(__file__).parent
HOSTILE = '<img src="x" onerror="window.acted=1">'
COUNT = 1000


@pytest.fixture(scope="module")
def site() -> dict[str, Any]:
    """A thousand hosts, one of which answers with markup."""
    report = report_sample.sample(COUNT)
    (entry,) = [entry for entry in report["hosts"] if entry["host"] == "data0002"]
    entry |= {"kernel": HOSTILE, "environment": HOSTILE, "stack": HOSTILE, "digest": "</script><b data-test=hostile>"}
    entry["reasons"] = [HOSTILE, "</td><script data-test=hostile>window.acted=1</script>"]
    entry["gpu_models"] = ["\"' onload='x"]
    report["problems"] = [HOSTILE]
    return report


@pytest.fixture(scope="module")
def page(site: dict[str, Any]) -> str:
    return report_page.page(site)


class Reader(HTMLParser):
    """Every tag with its attributes, and that each is closed in order."""

    EMPTY = ("meta", "input", "br", "img")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("li",):
            assert self.open[-1] == tag, (self.open, tag)
        self.open.pop()


def test_the_page_needs_no_other_file_and_no_network(page):
    reader = Reader(page)
    assert reader.open == []
    assert not any({"src", "href", "srcset", "data"} & set(attributes) for _, attributes in reader.tags)
    assert not {"link", "iframe", "object", "img"} & {tag for tag, _ in reader.tags}
    assert re.findall(r"@import|url\(|fetch\(|XMLHttpRequest|innerHTML|eval\(", page) == []


def test_the_page_is_complete_without_its_script(page):
    reader = Reader(page)
    bodies = [attributes for tag, attributes in reader.tags if tag == "tbody"]
    assert len(bodies) == COUNT
    assert [body for body in bodies if "hidden" in body] == []
    assert any(attributes.get("class") == "controls" and "hidden" in attributes for _, attributes in reader.tags)


def test_only_the_pages_own_script_and_style_may_act(page):
    (policy,) = [attributes["content"] for tag, attributes in Reader(page).tags if "http-equiv" in attributes]
    (script,), (style,) = (re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S) for tag in ("script", "style"))
    expected = {"default-src 'none'", f"script-src '{report_page.source_hash(script)}'"}
    expected |= {f"style-src '{report_page.source_hash(style)}'", "base-uri 'none'", "form-action 'none'"}
    assert set(str(policy).split("; ")) == expected
    assert not [attributes for _, attributes in Reader(page).tags if any(name.startswith("on") for name in attributes)]


def test_what_hosts_answered_is_text(page):
    assert HOSTILE not in page
    assert page.count(html.escape(HOSTILE).replace("&quot;", "&#34;")) >= 4
    assert "data-test=hostile>window" not in page


def test_a_state_is_told_by_a_word_and_a_mark_too(page):
    for state, (_, mark, word) in report_page.LOOKS.items():
        assert f'<span class="mark" aria-hidden="true">{mark}</span> {state}</span>' in page
        assert word in page
    assert len({mark for _, mark, _ in report_page.LOOKS.values()}) == len(report_page.LOOKS)


@pytest.fixture(scope="module")
def served(page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """The page and what uses it on loopback, and the paths that are asked for."""
    directory = tmp_path_factory.mktemp("page")
    (directory / "report.html").write_text(page, encoding="utf-8")
    for name in ("report_page_driver.html", "report_page_driver.js"):
        shutil.copy(HERE / name, directory)
    accessed_paths: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(directory))

        def log_message(self, format: str, *arguments: Any) -> None:
            accessed_paths.append(self.path)

    with loopback.served(Handler) as address:
        yield address, accessed_paths


@pytest.fixture(scope="module")
def answers(served: tuple[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return browser.answers(f"{served[0]}/report_page_driver.html", tmp_path_factory.mktemp("profile"))


def names(site: dict[str, Any], **where: Any) -> set[str]:
    return {entry["host"] for entry in site["hosts"] if all(entry[key] == value for key, value in where.items())}


def test_a_browser_shows_the_worst_hosts_first(answers, site):
    first = answers["first"]["hosts"]
    unreachable_hosts = names(site, state="unreachable")
    assert set(first[: len(unreachable_hosts)]) == unreachable_hosts
    assert answers["first"]["said"] == f"{COUNT} of {COUNT} shown"


def test_a_browser_sorts_by_a_column_and_turns_the_order(answers, site):
    assert answers["byHost"]["hosts"] == sorted(names(site))
    assert answers["byHost"]["order"] == "ascending"
    assert answers["byHostDown"]["hosts"] == sorted(names(site), reverse=True)
    assert (answers["byHostDown"]["order"], answers["byHostDown"]["others"]) == ("descending", "none")
    assert answers["byHostDown"]["address"] == "#sort=-host"


def test_a_browser_sorts_versions_as_versions_and_what_is_unknown_last(answers, site):
    host_order = [name for name in answers["byKernel"]["hosts"] if name != "data0002"]
    older_hosts, newer_hosts = (names(site, kernel=kernel) for kernel in reversed(report_sample.KERNELS))
    assert set(host_order[: len(older_hosts)]) == older_hosts
    assert set(host_order[len(older_hosts) : len(older_hosts) + len(newer_hosts)]) == newer_hosts - {"data0002"}
    assert set(host_order[len(older_hosts) + len(newer_hosts) :]) == names(site, kernel=None)


def test_a_browser_filters_by_words_states_and_groups(answers, site):
    assert answers["oneHost"]["hosts"] == ["data0005"]
    assert answers["oneHost"]["said"] == f"1 of {COUNT} shown"
    turing = [entry for entry in site["hosts"] if "T4" in entry["gpu_models"]]
    xid_hosts = {entry["host"] for entry in turing if "xid" in json.dumps(entry["reasons"])}
    assert xid_hosts
    assert set(answers["twoWords"]["hosts"]) == xid_hosts
    assert set(answers["faults"]["hosts"]) == names(site, state="fault") | names(site, state="unreachable")
    assert answers["faults"]["pressed"] == "false"
    assert "states=fault+unreachable" in answers["faults"]["address"]
    assert set(answers["edges"]["hosts"]) == names(site, groups=["edge_nodes"])


def test_a_browser_says_that_nothing_matches_and_shows_all_again(answers):
    assert (answers["none"]["hosts"], answers["none"]["message"]) == ([], True)
    assert len(answers["again"]["hosts"]) == COUNT


def test_everything_can_be_reached_with_the_keyboard_and_fits_a_screen(answers):
    assert answers["unfocusable"] == []
    assert answers["untold"] == 0
    assert answers["width"][0] <= answers["width"][1]


def test_markup_of_a_host_does_not_act_in_a_browser_and_is_to_be_read(answers):
    assert answers["hostile"] is True
    assert answers["shown"] is True


def test_a_browser_asks_for_nothing_but_the_page(answers, served):
    own_paths = {"/report_page_driver.html", "/report_page_driver.js", "/report.html", "/favicon.ico"}
    assert set(served[1]) <= own_paths


def test_an_address_with_a_view_shows_it(served, site, tmp_path):
    document = browser.opened(f"{served[0]}/report.html#states=drift&sort=-host", tmp_path)
    bodies = re.findall(r'<tbody class="(\w+)"[^>]*?( hidden="")?>.*?<th scope="row">(\w+)</th>', document, re.S)
    visible_names = [name for _, hidden, name in bodies if not hidden]
    assert visible_names == sorted(names(site, state="drift"), reverse=True)


def test_a_report_of_one_host_and_of_none_is_a_page_too(site):
    for count in (0, 1):
        small_report = {**copy.deepcopy(site), "hosts": site["hosts"][:count], "groups": [], "problems": []}
        assert Reader(report_page.page(small_report)).open == []
