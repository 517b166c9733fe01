# -*- coding: utf-8 -*-
"""A set of Debian packages in a mirror: named packages of a signed, flat apt repository, with what they require. Python 3.6 and later.

apt works in a root of its own: it knows this repository and this key alone, and nothing of the mirror host. The set has the source's own signed index, byte by
byte, and of the packages that it lists the chosen ones: hosts verify all of it with the source's key, and need not trust the mirror.
"""

from __future__ import absolute_import, division, print_function

import os
import posixpath
import pwd
import re
import shutil
import stat
import urllib.parse

from . import confinement, package_sets, processes, whole_files

USER = "_apt"
HELPER = "/usr/lib/apt/apt-helper"
PROGRAMS = ("apt-get", "apt-cache", "gpgv")
INDEX = re.compile(r"^ ([0-9a-f]{64}) +\d+ (?:\./)?(Packages(?:\.\w+)?)$", re.MULTILINE)
URI = re.compile(r"^'([^']+)' \S+ \d+ (SHA256:[0-9a-f]{64})$", re.MULTILINE)
PACKAGE = re.compile(
    r"^[a-z0-9][a-z0-9.+-]*[a-z0-9.](=[0-9][\w.+:~-]*)?$"
)  # apt reads NAME- and NAME+ as removal and installation
# Programs of apt that talk to the network run as its own user, which may write into FETCHED alone. What they leave is compared before it is used.
FETCHED = ("lists/partial", "cache/archives/partial", "fetched")
CONFIGURATION = """\
Dir "{root}";
Dir::State "{root}/state";
Dir::State::lists "{root}/lists";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
Dir::Log "{root}/log";
Dir::Etc "{root}/etc";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Bin::methods "/usr/lib/apt/methods";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Sandbox::User "{user}";
APT::Install-Recommends "false";
Acquire::AllowInsecureRepositories "false";
Acquire::ForceHash "SHA256";
Acquire::Languages "none";
Acquire::Retries "2";
"""


class Apt(object):
    """apt in a directory of its own, with one repository and one key."""

    def __init__(self, root, url, key, end):
        self.root, self.url, self.end = root, url, end
        for folder in ("state", "log", "etc") + FETCHED:
            os.makedirs(os.path.join(root, folder), 0o755)
        user = self.give_away() if os.geteuid() == 0 else "root"
        text = CONFIGURATION.format(root=root, user=user)
        ca = os.environ.get("SSL_CERT_FILE")
        self.write("configuration", text + ('Acquire::https::CAInfo "%s";\n' % ca if ca else ""))
        self.write("key.asc", key + "\n")
        self.write("sources.list", "deb [arch=amd64 signed-by=%s/key.asc] %s /\n" % (root, url), 0o600)
        self.write("status", "")

    def give_away(self):
        """Let apt's user write what it fetches; its name."""
        try:
            user = pwd.getpwnam(USER)
        except KeyError:
            raise package_sets.SetError("apt must have its user %s, but this host has none. Install apt again." % USER)
        closed = confinement.closed([self.root])
        if closed:  # apt would fetch as root
            raise package_sets.SetError(
                "apt fetches as its user %s, so all users must be able to enter %s (chmod o+x)." % (USER, closed)
            )
        for folder in FETCHED:
            os.chown(os.path.join(self.root, folder), user.pw_uid, user.pw_gid)
        return USER

    def write(self, name, text, mode=0o644):
        whole_files.write_whole(os.path.join(self.root, name), text.encode("utf-8"), mode=mode)

    def run(self, *command):
        environment = dict(os.environ, APT_CONFIG=os.path.join(self.root, "configuration"), LC_ALL="C")
        return processes.run(list(command), max(1, self.end - processes.clock()), environment)

    def update(self):
        """Read the repository's index; its signed files."""
        answer = self.run("apt-get", "-qq", "update")
        lists = os.path.join(self.root, "lists")
        names = [name for name in sorted(os.listdir(lists)) if os.path.isfile(os.path.join(lists, name))]
        signed = dict((name.rpartition("_")[2], os.path.join(lists, name)) for name in names if "Release" in name)
        if answer.status != 0 or not signed or not any("Packages" in name for name in names):
            raise package_sets.SetError(
                "%s must be a flat apt repository (deb URL /) that is signed with the key of the set, but apt reports: %s"
                % (self.url, said(answer))
            )
        return signed

    def chosen(self, packages):
        """URI and digest of the packages and of what they require, as apt chooses; and what is in no repository here."""
        wrong = [package for package in packages if not PACKAGE.match(package)]
        if wrong:
            raise package_sets.SetError(
                "The packages of a set of kind deb must be NAME or NAME=VERSION, but there is %s." % ", ".join(wrong)
            )
        relations = [
            "--no-%s" % kind for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
        ]
        listing = self.run("apt-cache", "depends", "--recurse", *(relations + list(packages)))
        system_packages = without_providers(listing.output)
        # What is of the system itself counts as installed, in a version that is new enough.
        self.write("status", "".join(INSTALLED % name for name in sorted(system_packages)))
        answer = self.run("apt-get", "-q", "--yes", "--print-uris", "install", *packages)
        sources = URI.findall(answer.output)
        if answer.status != 0 or not sources:
            raise package_sets.SetError(
                "apt must be able to choose the packages %s of %s, but reports: %s"
                % (", ".join(packages), self.url, said(answer))
            )
        return sources, sorted(system_packages)

    def fetch(self, downloads):
        """Fetch these (address, file, digest). What apt reports; empty if all came."""
        places = [os.path.join(self.root, "fetched", str(number)) for number in range(len(downloads))]
        words = [word for download, place in zip(downloads, places) for word in (download[0], place, download[2])]
        answer = self.run(HELPER, "-qq", "download-file", *words)
        if answer.status != 0:
            return said(answer)
        for (address, path, digest), place in zip(downloads, places):
            whole_files.make_directory(os.path.dirname(path))
            take(place, path)
            if digest != "SHA256:" + whole_files.sha256_of(path):
                return "%s has another sha256 than the signed index" % address
        return ""


def take(source, target):
    """Copy a file that apt's user may still write, and remove it; a link is not followed."""
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as source_file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise package_sets.SetError("%s must be a file, but is something else." % source)
        with open(target, "wb") as target_file:
            shutil.copyfileobj(source_file, target_file, 1 << 20)
    os.unlink(source)


INSTALLED = """\
Package: %s
Status: install ok installed
Architecture: amd64
Multi-Arch: foreign
Version: 9999:0
Maintainer: -
Description: -

"""


class Maker(package_sets.Maker):
    """Makes one set of Debian packages below the mirror's root."""

    FOLDER = "deb"
    METADATA = package_sets.RECORD  # the index is among the record's files

    def check_programs(self):
        missing_programs = [name for name in PROGRAMS if not processes.which(name)]
        missing_programs += [] if os.access(HELPER, os.X_OK) else [HELPER]
        if missing_programs:
            raise package_sets.SetError(
                "The set %s of mirror_package_sets has kind: deb, which requires apt on the mirror host, but it has no %s. Make it on a host with Debian or "
                "Ubuntu (scripts/mirror fetch does the same there), or remove the set."
                % (self.name, ", ".join(missing_programs))
            )

    def fill(self, draft, work, end):
        repository = self.repositories[0]
        url = repository["url"].rstrip("/")
        os.chmod(work, 0o711)  # noqa: S103 (apt's user enters it)
        apt = Apt(os.path.join(work, "apt"), url, repository["key"], end)
        signed = apt.update()
        for name, path in signed.items():
            shutil.copyfile(path, os.path.join(draft, name))
        self.fetch_index(apt, draft, url)
        sources, system_packages = apt.chosen(self.packages)
        downloads = [(uri, os.path.join(draft, self.path(uri, url)), digest) for uri, digest in sources]
        self.keep_files(draft, downloads)
        missing_downloads = [triple for triple in downloads if not os.path.exists(triple[1])]
        self.say("%s: %d packages" % (self.name, len(missing_downloads)))
        problem = apt.fetch(missing_downloads) if missing_downloads else ""
        if problem:
            raise package_sets.SetError("The packages of the set %s could not be fetched: %s" % (self.name, problem))
        files = [os.path.relpath(os.path.join(top, name), draft) for top, _, names in os.walk(draft) for name in names]
        for path in files:
            os.chmod(os.path.join(draft, path), 0o644)
        Apt(os.path.join(work, "served"), "file:" + draft, repository["key"], end).update()  # as hosts will read it
        self.write_record(draft, files, system_packages)
        return system_packages

    def fetch_index(self, apt, draft, url):
        """The index in each form that the signed file lists and the source has; one is enough for apt."""
        release = [name for name in ("InRelease", "Release") if os.path.exists(os.path.join(draft, name))][0]
        with open(os.path.join(draft, release), encoding="utf-8") as handle:
            rows = INDEX.findall(handle.read())
        problems = [
            apt.fetch([("%s/%s" % (url, name), os.path.join(draft, name), "SHA256:" + digest)]) for digest, name in rows
        ]
        if all(problems):
            raise package_sets.SetError(
                "%s must have the index that its %s lists by SHA256, but %s"
                % (url, release, "; ".join(problems) or "none is listed")
            )

    def path(self, uri, url):
        """Where a package is below the repository's address."""
        path = posixpath.normpath(urllib.parse.unquote(uri)[len(url) + 1 :])
        if not uri.startswith(url + "/") or not package_sets.HELD.match(path):
            raise package_sets.SetError(
                "A package of the set %s must be below %s, but one is %s." % (self.name, url, uri)
            )
        return path

    def keep_files(self, draft, downloads):
        """What the served set has already, with the digest that apt expects, is not fetched again."""
        for _, path, digest in downloads:
            served_path = os.path.join(self.place, os.path.relpath(path, draft))
            if os.path.isfile(served_path) and digest == "SHA256:" + whole_files.sha256_of(served_path):
                whole_files.make_directory(os.path.dirname(path))
                os.link(served_path, path)


def without_providers(listing):
    """The names in angle brackets of apt-cache depends, which no package here has or provides."""
    bracketed_names, providers, last = set(), set(), ""
    for line in listing.splitlines():
        if line.startswith("    ") and last:
            providers.add(last)
        else:
            word = line.split()[-1] if line.split() else ""
            last = word[1:-1] if word.startswith("<") else ""
            bracketed_names.update([last] if last else [])
    return bracketed_names - providers


def said(answer, most=3):
    """What apt reports, in one line: its errors, and requirements that nothing meets."""
    lines = [line.strip() for line in (answer.error + "\n" + answer.output).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E:") or "Depends: " in line] or lines
    return package_sets.one_line("; ".join(errors[:most])) or answer.problem or "nothing"
