"""A real KDC (MIT krb5, Debian's packages) on a port of this machine, without root: programs, a realm, keytabs.

The programs are those of the system, or they are unpacked once into .cache/krb5 with apt-get download; where neither is possible, tests are skipped.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from waiting import until

CACHE = Path(__file__).parents[2] / ".cache" / "krb5"
PACKAGES = [
    "krb5-kdc",
    "krb5-user",
    "krb5-admin-server",
    "libkadm5srv-mit12",
    "libkadm5clnt-mit12",
    "libkdb5-10",
    "libgssrpc4",
    "libverto1",
    "libverto-libev1",
    "libev4",
]
REALM = "TEST.EXAMPLE"


def unpack() -> None:
    if CACHE.exists():
        return
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as directory:
        completed = subprocess.run(
            ["apt-get", "-q", "download", *PACKAGES], cwd=directory, capture_output=True, timeout=120, check=False
        )
        if completed.returncode:
            pytest.skip(f"MIT krb5 is not here and cannot be fetched: {completed.stderr.decode()[-200:]}")
        tree = Path(directory) / "tree"
        for package in Path(directory).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, tree], check=True)
        try:
            tree.rename(CACHE)
        except OSError:  # another process of these tests was faster
            assert CACHE.exists()


@dataclass
class Realm:
    directory: Path
    variables: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Realm":
        if not shutil.which("krb5kdc") or not shutil.which("kadmin.local"):
            if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
                pytest.skip("MIT krb5 is not here and cannot be fetched: this is no Debian")
            unpack()
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        plugins = CACHE / "usr/lib/x86_64-linux-gnu/krb5/plugins/kdb"
        places = f"[dbmodules]\n db_module_dir = {plugins}\n" if plugins.exists() else ""
        conf = self.directory / "krb5.conf"
        conf.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n dns_canonicalize_hostname = false\n"
            f" udp_preference_limit = 1\n[realms]\n {REALM} = {{\n kdc = 127.0.0.1:{port}\n }}\n{places}",
            encoding="utf-8",
        )
        (self.directory / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
            f"[realms]\n {REALM} = {{\n database_name = {self.directory}/principal\n key_stash_file = {self.directory}/stash\n"
            f" acl_file = {self.directory}/acl\n }}\n{places}",
            encoding="utf-8",
        )
        self.variables = {
            "KRB5_CONFIG": str(conf),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "LD_LIBRARY_PATH": str(CACHE / "usr/lib/x86_64-linux-gnu"),
            "PATH": f"{CACHE}/usr/bin:{CACHE}/usr/sbin:{os.environ['PATH']}:/usr/sbin",
            "KRB5CCNAME": str(self.directory / "nobody's"),
        }
        self.run("kdb5_util", "create", "-s", "-P", "of no value", "-r", REALM)
        self.process = subprocess.Popen(
            ["krb5kdc", "-n", "-P", str(self.directory / "pid")],
            env={**os.environ, **self.variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, 20, "krb5kdc does not listen")
        return self

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(10)

    def run(self, *command: str, **variables: str) -> str:
        completed = subprocess.run(
            command,
            env={**os.environ, **self.variables, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def keytab(self, name: str) -> Path:
        """A principal of this name and its keytab, 0600."""
        path = self.directory / f"{name.replace('/', '_')}.keytab"
        if not path.exists():
            self.run("kadmin.local", "-q", f"addprinc -randkey {name}")
            self.run("kadmin.local", "-q", f"ktadd -k {path} {name}")
            path.chmod(0o600)
        return path
