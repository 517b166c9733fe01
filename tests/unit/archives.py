"""Archives of small files, as a site has those of vendors."""

import tarfile
from pathlib import Path


def archive(root: Path, top: str, *names: str) -> str:
    """A packed directory with these files; each has the directory and its name as content."""
    path = root / f"{top}.tar.gz"
    if path.exists():  # gzip writes the time
        return str(path)
    for name in names:
        (root / top / name).parent.mkdir(parents=True, exist_ok=True)
        (root / top / name).write_text(f"{top} {name}")
    with tarfile.open(path, "w:gz") as bundle:
        bundle.add(root / top, top)
    return str(path)
