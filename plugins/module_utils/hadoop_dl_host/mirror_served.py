"""Request from a mirror everything that hosts will request. Python 3.6 and later, standard library only."""

import re
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

from . import connections, downloads, mirror_files, mirror_pages
from . import mirror_index as index


def problems(artifacts, url, index_url=None, ca=""):
    """What a mirror lacks for hosts. As hosts do, it requests without a proxy each file, by name and size, and the folder's page.

    index_url: of a package index (PEP 503) that has the wheels in place of wheels/; user and password may be in it.
    ca: the CA bundle of the hosts for https; empty for the system's.
    """
    artifacts = mirror_files.unique(artifacts)
    address = url.rstrip("/") + "/"

    def shortly(seconds):
        time.sleep(min(seconds, 1))

    def patiently(title, place, action):
        return index.patiently(title, place, action, shortly, "mirror_ca")

    def size_at(place):
        with index.open_url(place, {"Range": "bytes=0-0", "Accept-Encoding": "identity"}, ca) as answer:
            match = re.search(r"/(\d+)$", answer.headers.get("Content-Range", ""))
            return int(match.group(1) if match else answer.headers.get("Content-Length", -1))

    def place_of(artifact):
        if not (index_url and artifact["folder"] == "wheels"):
            return address + artifact["folder"] + "/" + urllib.parse.quote(artifact["name"])
        project = mirror_pages.project_of(artifact["name"])
        place = index.find_offer(dict(artifact, project=project), index_url, shortly, ca)["url"]
        if connections.server_of(place) != connections.server_of(index_url):
            raise index.MirrorError(
                "%s must come from the index itself, but its link is of %s. Let the index keep what it fetches."
                % (artifact["name"], connections.server_of(place)[1])
            )
        return place

    def ask(artifact):
        try:
            place = place_of(artifact)
            size = patiently(artifact["name"], place, lambda: size_at(place))
        except index.MirrorError as error:
            return str(error)
        if artifact.get("size") in (None, size):
            return None
        return "%s must have %d bytes, but at %s it has %d. Put the lock's file there." % (
            artifact["name"],
            artifact["size"],
            downloads.without_secrets(place),
            size,
        )

    def names_on(place):
        with index.open_url(place, host_ca=ca) as answer:
            return set(offer["name"] for offer in index.parse_index(index.page_of(answer, place), "", place))

    with ThreadPoolExecutor(4) as pool:
        sentences = [answer for answer in pool.map(ask, artifacts) if answer]
    wheels = set(artifact["name"] for artifact in artifacts if artifact["folder"] == "wheels")
    if wheels and not sentences and not index_url:
        place = address + "wheels/"
        try:
            unlisted_wheels = wheels - patiently("The list of the wheels", place, lambda: names_on(place))
        except index.MirrorError as error:
            return [str(error)]
        if unlisted_wheels:
            sentences.append(
                "The page %s must link to every wheel, but does not link to %s. Let the web server list that folder."
                % (downloads.without_secrets(place), ", ".join(sorted(unlisted_wheels)))
            )
    return sentences
