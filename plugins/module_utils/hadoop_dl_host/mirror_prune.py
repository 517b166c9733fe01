"""Remove from a mirror what nothing needs any more. Python 3.6 and later, standard library only."""

import os

from . import mirror_files


def held_of(artifacts, manifest):
    """Paths of the manifest's rows that are one of these artifacts; sorted."""
    hashes = {"%(folder)s/%(name)s" % artifact: artifact["sha256"] for artifact in artifacts}
    return sorted(path for path, row in manifest.items() if hashes.get(path) == row.get("sha256"))


def prune(root, artifacts, dry=False):
    """Remove these artifacts, directories that are empty then, rows and pages; the paths.

    What the manifest does not list stays, and so does a row with other bytes than the artifact's.
    """
    root = str(root)
    if dry or not os.path.isdir(os.path.join(root, ".staging")):
        return held_of(artifacts, mirror_files.manifest_of(root))
    with mirror_files.only_one(root):
        paths = held_of(artifacts, mirror_files.manifest_of(root))
        for path in paths:
            _remove(root, path)
        if paths:
            mirror_files.write_manifest((), root)
    return paths


def _remove(root, path):
    file = os.path.join(root, path)
    if os.path.lexists(file):  # a run that was killed has removed some
        os.unlink(file)
    directory = os.path.dirname(path)
    while "/" in directory and not os.listdir(os.path.join(root, directory)):
        os.rmdir(os.path.join(root, directory))
        directory = os.path.dirname(directory)
