"""The mirror's package index (PEP 503): simple/PROJECT/index.html with a link and a sha256 for each file. Python 3.6 and later, standard library only.

The pages are files, so that any web server serves them. They are written from the manifest and removed with it.
"""

import html
import os
import re
import urllib.parse

from . import atomic_files, lockfile

FOLDER = "simple"
PAGE = "index.html"
MARK = "<!-- written from manifest.json -->"
SUFFIXES = (".whl", ".tar.gz", ".tgz", ".tar.bz2", ".zip")


def project_of(name):
    """The normalized project of a wheel or source distribution; None for another file."""
    if not name.endswith(SUFFIXES):
        return None
    match = re.match(r"^([^-]+)-.*[.]whl$", name) or re.match(r"^(.+?)-\d", name)
    return lockfile.canonical(match.group(1)) if match else None


def pages(manifest):
    """Path below the mirror's directory -> text of every page. manifest: path -> row of the manifest."""
    projects = {}
    for path in sorted(manifest):
        project = project_of(path.partition("/")[2]) if path.startswith("wheels/") else None
        if project:
            projects.setdefault(project, []).append((path, manifest[path]["sha256"]))
    if not projects:
        return {}
    page_texts = {FOLDER + "/" + PAGE: _page((project + "/", project) for project in sorted(projects))}
    for project, files in projects.items():
        links = [
            ("../../%s#sha256=%s" % (urllib.parse.quote(path), sha256), path.partition("/")[2])
            for path, sha256 in files
        ]
        page_texts["%s/%s/%s" % (FOLDER, project, PAGE)] = _page(links)
    return page_texts


def _page(links):
    lines = ['<a href="%s">%s</a><br>\n' % (html.escape(address), html.escape(text)) for address, text in links]
    head = '<meta name="pypi:repository-version" content="1.0">'
    return "<!DOCTYPE html>\n%s\n<html><head>%s</head><body>\n%s</body></html>\n" % (MARK, head, "".join(lines))


def write(root, manifest):
    """Make the pages those of the manifest; whether one changed. Pages that are not of this project are kept."""
    page_texts = pages(manifest)
    changed = remove(root, set(page_texts))
    for path, text in sorted(page_texts.items()):
        place = os.path.join(root, path)
        if _text(place) != text:
            atomic_files.make_directory(os.path.dirname(place))
            atomic_files.write_whole(place, text.encode("utf-8"), os.path.join(root, ".staging", PAGE))
            changed = True
    return changed


def remove(root, current_paths=()):
    """Remove the pages that write() wrote, but these, and their directories; whether there was one."""
    folder, changed = os.path.join(root, FOLDER), False
    for path in written(root):
        if path not in current_paths:
            os.unlink(os.path.join(root, path))
            changed = True
    for directory in [os.path.join(folder, name) for name in _names(folder)] + [folder]:
        if os.path.isdir(directory) and not os.path.islink(directory) and not os.listdir(directory):
            os.rmdir(directory)
    return changed


def written(root):
    """Paths of the pages that write() wrote."""
    folder = os.path.join(root, FOLDER)
    paths = ["%s/%s/%s" % (FOLDER, name, PAGE) for name in _names(folder)] + [FOLDER + "/" + PAGE]
    return [path for path in paths if MARK in (_text(os.path.join(root, path)) or "")]


def _names(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def _text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return None
