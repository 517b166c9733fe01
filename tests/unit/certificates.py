"""Certificate authorities of a test, and the certificates of servers on this machine that they signed."""

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:pypi.invalid"  # Python 2.7 compares no IP address


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


def authority(directory: Path, name: str) -> Path:
    """NAME.ca, an authority; NAME.crt and NAME.key, a server's certificate that it signed."""
    if not shutil.which("openssl"):
        pytest.skip("makes certificates with openssl")
    ca, key, request = (directory / f"{name}.{kind}" for kind in ("ca", "key", "csr"))
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{key}.ca", "-out", f"{ca}", "-subj", f"/CN={name}"
    )
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{key}", "-out", f"{request}", "-subj", "/CN=mirror")
    (directory / "names").write_text(NAMES)
    options = ["-CA", f"{ca}", "-CAkey", f"{key}.ca", "-CAcreateserial", "-extfile", f"{directory / 'names'}"]
    openssl("x509", "-req", "-in", f"{request}", "-out", f"{directory / name}.crt", "-days", "2", *options)
    return ca
