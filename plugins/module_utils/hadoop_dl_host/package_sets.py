"""A set of RPM packages in a mirror: named packages, with what they require, from signed repositories. Python 3.6 and later.

dnf reads the repositories, of whatever release they are, and fetches; rpmkeys checks every package with the given keys alone; createrepo_c writes
the repository's metadata. Nothing of this machine's own repositories, packages and keys is used or changed. A set is made beside the older one, and
takes its place when it is complete.
"""

import binascii
import errno
import hashlib
import importlib
import json
import os
import re
import shutil

from . import atomic_files, processes, replaced_directory
from .mirror_index import MirrorError

FOLDERS = ("rpm", "deb")  # the second has sets of Debian packages that release 0.2 made
RECORD = "set.json"
METADATA = os.path.join("repodata", "repomd.xml")
ARCHITECTURES = ("x86_64", "noarch")
PROGRAMS = {"createrepo_c": "createrepo_c", "rpmkeys": "rpm"}  # program: package of RHEL that has it
NAME = re.compile(r"^[A-Za-z0-9][\w.-]*$")
WORD = re.compile(r"[A-Za-z][\w.+-]*")
OPERATORS = {"if", "else", "unless", "and", "or", "with", "without"}
LEFT = re.compile(r"^\..+\.(old|old-removing|new-(work-)?[0-9]+)$")  # by replaced_directory and Maker
FILE = re.compile(r"^[A-Za-z0-9][\w.+^~-]*\.rpm$")
HELD = re.compile(r"^[A-Za-z0-9][\w.+^~:-]*(/[A-Za-z0-9][\w.+^~:-]*)*$")  # below the set, by plain names


def digest(request):
    """The digest of a request; a set with the same one is not made again."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode("utf-8")).hexdigest()


def record_of(path):
    """What was written about a set when it was complete; {} if there is none."""
    try:
        with open(os.path.join(path, RECORD), encoding="utf-8") as handle:
            record = json.load(handle)
        return record if isinstance(record["packages"], dict) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def difference(path, request):
    """Why the set must be made; empty if it is complete with every byte."""
    record = record_of(path)
    if not record:
        return "there is no complete set"
    if record.get("request") != digest(request):
        return "it was made of other inputs"
    for name, sha256 in sorted(record["packages"].items()):
        file = os.path.join(path, name)
        if not os.path.isfile(file) or atomic_files.sha256_of(file) != sha256:
            return "%s is missing or differs" % name
    if not os.path.isfile(os.path.join(path, METADATA)):
        return "its metadata is missing"
    return ""


def remove(root, dry=False):
    """Remove every set of a mirror, and what killed runs left; other files stay. Each record goes last. Returns the paths."""
    removals = []
    for folder in [os.path.join(root, kind) for kind in FOLDERS]:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            path = os.path.join(folder, name)
            if LEFT.match(name):
                removals.append(path)
            files = sorted(rpm for rpm in record_of(path).get("packages", {}) if HELD.match(rpm)) + ["repodata", RECORD]
            if record_of(path):
                removals += [os.path.join(path, file) for file in files if os.path.lexists(os.path.join(path, file))]
    for path in () if dry else removals:
        replaced_directory.discard(path)
        if os.path.basename(path) == RECORD:
            remove_empty_below(os.path.dirname(path))
    for folder in FOLDERS if removals and not dry else ():
        remove_empty(os.path.join(root, folder))
    return removals


def remove_empty_below(directory):
    """Remove a directory and those in it, as far as they hold nothing."""
    for top, _, _ in list(os.walk(directory, topdown=False)):
        remove_empty(top)


def remove_empty(directory):
    """Remove a directory that holds nothing; what others put there stays."""
    try:
        os.rmdir(directory)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EBUSY, errno.ENOTDIR):
            raise


class Maker(object):
    """Makes one set of RPM packages below the mirror's root."""

    def __init__(self, root, name, packages, repositories, key):
        """repositories: their addresses. key: the text of the public keys that sign their packages."""
        if not NAME.match(name):
            raise MirrorError(
                "The name of a package set must be one word of letters, digits, - and . but is %r." % name
            )
        self.root, self.name, self.packages = root, name, list(packages)
        self.repositories, self.key = list(repositories), key
        self.place = os.path.join(root, "rpm", name)
        self.old = os.path.join(root, "rpm", ".%s.old" % name)

    def request(self):
        return {"packages": sorted(self.packages), "repositories": self.repositories, "key": self.key}

    def reason(self):
        return difference(self.place, self.request())

    def make(self, seconds):
        """Fetch, check, index and publish it."""
        check_programs()
        for folder in (self.root, os.path.dirname(self.place)):
            atomic_files.make_directory(folder)
        draft = replaced_directory.draft(self.old)
        work = "%s.new-work-%d" % (self.old[: -len(".old")], os.getpid())
        os.makedirs(work, 0o700)
        try:
            os.mkdir(draft, 0o755)
            self.fill(draft, work, processes.clock() + seconds)
            atomic_files.sync_tree(draft)
            replaced_directory.put(draft, self.place, self.old)
        finally:
            shutil.rmtree(work, ignore_errors=True)
            replaced_directory.discard(draft)

    def fill(self, draft, work, end):
        base = open_repositories(self.repositories, work, draft)
        try:
            packages, system_packages = closure(base, self.name, self.packages)
            self.keep(draft, packages)
            self.fetch(base, packages)
        finally:
            base.close()
        files = set(os.path.basename(package.location) for package in packages)
        if files != set(os.listdir(draft)):
            raise MirrorError("The set %s must have the chosen packages alone: dnf fetched something else." % self.name)
        self.check_signatures(draft, sorted(files), work, end)
        command = ["createrepo_c", "--quiet", draft]
        answer = processes.run(command, max(1, end - processes.clock()))
        if answer.status != 0:
            raise MirrorError(
                "createrepo_c must write the metadata of %s, but failed: %s"
                % (self.name, answer.error or answer.problem)
            )
        record = {
            "request": digest(self.request()),
            "packages": {name: atomic_files.sha256_of(os.path.join(draft, name)) for name in files},
            "elsewhere": system_packages,
        }
        atomic_files.write_json(os.path.join(draft, RECORD), record)  # the set is complete with it

    def keep(self, draft, packages):
        """What the served set has already is not fetched again. Only the same bytes are linked: dnf writes into a file that differs."""
        for package in packages:
            name = os.path.basename(package.location)
            served_path = os.path.join(self.place, name)
            if not FILE.match(name) or not os.path.isfile(served_path):
                continue
            if binascii.hexlify(package.chksum[1]).decode("ascii") == atomic_files.sha256_of(served_path):
                os.link(served_path, os.path.join(draft, name))

    def fetch(self, base, packages):
        import dnf.exceptions

        try:
            base.download_packages(packages)
        except (dnf.exceptions.Error, OSError) as error:
            raise MirrorError(
                "The packages of the set %s could not be fetched: %s" % (self.name, one_line(error))
            ) from None

    def check_signatures(self, draft, files, work, end):
        """Every package is signed by one of the given keys; this machine's own key ring is not asked."""
        rpmkeys = ["rpmkeys", "--define", "_dbpath %s" % os.path.join(work, "keys")]
        key = os.path.join(work, "key.asc")
        atomic_files.write_whole(key, self.key.encode("utf-8"))
        if processes.run(rpmkeys + ["--import", key], 60).status != 0:
            raise MirrorError("mirror_gpu_key must have OpenPGP public keys, but rpm cannot read it.")
        paths = [os.path.join(draft, name) for name in files]
        answer = processes.run(
            rpmkeys + ["--checksig"] + paths, max(1, end - processes.clock()), dict(os.environ, LC_ALL="C")
        )
        good = set(
            line.rpartition(":")[0] for line in answer.output.splitlines() if line.endswith(": digests signatures OK")
        )
        bad_files = [os.path.basename(path) for path in paths if path not in good]
        if bad_files or answer.status != 0:
            raise MirrorError(
                "Every package of the set %s must be signed with the key of its repository, but %s. Compare mirror_gpu_key with the keys that the "
                "repositories publish."
                % (self.name, shown(bad_files, "these are not") or one_line(answer.error or answer.problem))
            )


def check_programs():
    missing_packages = []
    try:
        importlib.import_module("dnf.exceptions")
    except ImportError:
        missing_packages.append("python3-dnf")
    missing_packages += [package for program, package in sorted(PROGRAMS.items()) if not processes.which(program)]
    if missing_packages:
        raise MirrorError(
            "The packages of the GPU layer require dnf's Python module for /usr/bin/python3, createrepo_c and rpm on this machine, but it has no %s. "
            "Install that: RHEL 8 and 9 have all of it." % ", ".join(missing_packages)
        )


def open_repositories(repositories, work, draft):
    """dnf with these repositories alone, and nothing of this host."""
    import dnf
    import dnf.exceptions
    import dnf.repo

    base = dnf.Base()
    conf = base.conf
    conf.installroot = os.path.join(work, "root")
    conf.reposdir, conf.pluginpath, conf.destdir = [], [], draft
    conf.cachedir, conf.persistdir, conf.logdir = (os.path.join(work, name) for name in ("cache", "persist", "log"))
    os.mkdir(conf.logdir)
    conf.module_platform_id = "platform:mirror"  # no streams: each repository has module_hotfixes
    conf.substitutions["releasever"] = ""  # this machine's own; None, which libdnf refuses, if it is no RHEL
    if os.environ.get("SSL_CERT_FILE"):
        conf.sslcacert = os.environ["SSL_CERT_FILE"]
    for number, url in enumerate(repositories):
        repo = dnf.repo.Repo("set-%d" % number, conf)
        repo.baseurl, repo.name = [url], url
        repo.module_hotfixes, repo.skip_if_unavailable, repo.pkgdir = True, False, draft
        base.repos.add(repo)
    try:
        base.fill_sack(load_system_repo=False)
    except dnf.exceptions.RepoError as error:
        message = one_line(error)
        for repo in base.repos.iter_enabled():
            message = message.replace("'%s'" % repo.id, repo.name)
        raise MirrorError("dnf must be able to read the repositories of the set, but cannot: %s." % message) from None
    return base


def closure(base, name, specs):
    """The named packages in their newest version, with what they require of these repositories; and what is in none of them."""
    import dnf.subject

    packages, absent_specs = {}, []
    for spec in specs:
        matches = []
        for alternative in spec.split("|"):
            subject = dnf.subject.Subject(alternative)
            matches = matches or of_this_machine(
                subject.get_best_query(base.sack, with_provides=False, with_filenames=False)
            )
        if not matches:
            absent_specs.append(spec.replace("|", " or ") + others(base, spec.partition("|")[0]))
        packages.update((str(package), package) for package in newest(matches))
    if absent_specs:
        raise MirrorError(
            "The repositories of the set %s (%s) must have its packages, but not: %s. Request a version that they have, or name a repository "
            "that has it: mirror_gpu_repositories."
            % (name, ", ".join(repo.name for repo in base.repos.iter_enabled()), "; ".join(absent_specs))
        )
    queue, system_packages = sorted(packages.values(), key=str), set()
    while queue:
        for requirement in queue.pop(0).requires:
            if not str(requirement).startswith("rpmlib("):
                for package in required(base, requirement, packages, system_packages):
                    packages[str(package)] = package
                    queue.append(package)
    return [packages[key] for key in sorted(packages)], sorted(system_packages)


def required(base, requirement, packages, system_packages):
    """What a requirement adds to the chosen packages. Of a condition (A if B) it is A."""
    text = str(requirement)
    available = of_this_machine(base.sack.query().available())
    if text.startswith("("):
        names = set(WORD.findall(text.partition(" if ")[0])) - OPERATORS
        names -= set(package.name for package in packages.values())
        return newest(available.filter(name=sorted(names)))
    providers = list(available.filter(provides=requirement)) or (
        list(available.filter(file=text)) if text.startswith("/") else []
    )
    if any(str(package) in packages for package in providers):
        return []
    if not providers:
        if re.match(r"^[A-Za-z0-9][\w.+-]*( |$)", text) and ".so" not in text:
            system_packages.add(text)
        return []
    namesakes = [package for package in providers if package.name == text.split()[0]]
    best = max(namesakes or providers, key=lambda package: (-len(package.name), package))
    return [best]


def others(base, spec):
    """Which versions of a package there are, if the named one is not."""
    words = spec.split("-")
    for count in range(len(words) - 1, 0, -1):
        packages = base.sack.query().available().filter(name="-".join(words[:count]))
        if packages:
            return " (there are %s)" % ", ".join(sorted(set(package.version for package in packages)))
    return ""


def of_this_machine(query):
    return query.filter(arch=list(ARCHITECTURES))


def newest(query):
    return list(query.latest())


def shown(names, title, most=5):
    suffix = " and %d more" % (len(names) - most) if len(names) > most else ""
    return "%s: %s%s" % (title, ", ".join(names[:most]), suffix) if names else ""


def one_line(error):
    return " ".join(str(error).split())
