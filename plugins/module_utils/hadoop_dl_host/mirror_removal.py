"""Remove a mirror: what its manifest lists, and directories that are empty then. Python 3.6 and later, standard library only."""

import os
import re
import shutil

from . import mirror_files, mirror_pages, package_sets

ARTIFACT = re.compile(r"^[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)+$")  # below the root, by plain names


def remove(root, keep_root, dry=False):
    """Remove the sets of packages and what manifest.json lists, then every directory that is empty; other files stay. Returns the paths; the manifest goes last."""
    paths = [path for path in mirror_files.manifest_of(root) if ARTIFACT.match(path)] + mirror_pages.written(root)
    removed_paths = [os.path.join(root, path) for path in sorted(paths) if os.path.lexists(os.path.join(root, path))]
    manifest, staging = os.path.join(root, "manifest.json"), os.path.join(root, ".staging")
    sets = package_sets.remove(root, dry)
    if dry:
        return sets + removed_paths + [path for path in (manifest, staging) if os.path.exists(path)]
    for path in removed_paths:
        os.unlink(path)
    if os.path.isdir(staging):
        shutil.rmtree(staging)
        removed_paths.append(staging)
    # The folders that a mirror has are known also if a killed removal has emptied the manifest's list.
    folders = set(("wheels", "files"))
    for path in paths:
        parts = path.split("/")
        folders.update("/".join(parts[:count]) for count in range(1, len(parts)))
    for folder in sorted((os.path.join(root, name) for name in folders), reverse=True):
        package_sets.remove_empty(folder)
    if os.path.exists(manifest):
        os.unlink(manifest)
        removed_paths.append(manifest)
    if not keep_root:
        package_sets.remove_empty(root)
    return sets + removed_paths
