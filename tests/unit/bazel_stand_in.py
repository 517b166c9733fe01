"""A program of this machine that is like bazel."""

import io
import zipfile
from pathlib import Path


def executable(path: Path, version: str, *, old: bool = False) -> Path:
    """A program of this machine with an archive behind it, as bazel is made: the label in the server's jar up to 0.27, beside it later."""
    jar, archive = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(jar, "w") as server:
        server.writestr("build-data.properties", f"main.class=Bazel\nbuild.label={version}\nbuild.time=x\n")
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("A-server.jar", jar.getvalue())
        if not old:
            content.writestr("build-label.txt", version)
    path.write_bytes(Path("/bin/true").read_bytes() + archive.getvalue())
    path.chmod(0o755)
    return path
