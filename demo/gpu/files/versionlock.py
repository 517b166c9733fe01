"""Stand-in for dnf's versionlock plugin: excludes every version of a locked name but the locked one.

Reads what the real one reads: NAME-EPOCH:VERSION-RELEASE.ARCH lines of /etc/dnf/plugins/versionlock.list.
"""

import re

import dnf

LIST = "/etc/dnf/plugins/versionlock.list"


class VersionLock(dnf.Plugin):
    name = "versionlock"

    def sack(self):
        try:
            with open(LIST) as handle:
                lines = [line.strip() for line in handle if line.strip() and not line.startswith("#")]
        except IOError:
            return
        locked = {}
        for line in lines:
            match = re.match(r"^(.+)-(\d+):([^-]+)-(.+)\.\*$", line)
            if match is None:
                raise dnf.exceptions.Error("versionlock: cannot read the line %r" % line)
            locked.setdefault(match.group(1), set()).add(match.groups()[1:])
        for name, versions in locked.items():
            other_versions = [
                package
                for package in self.base.sack.query().filter(name=name)
                if (str(package.epoch), package.version, package.release) not in versions
            ]
            self.base.sack.add_excludes(self.base.sack.query().filter(pkg=other_versions))
        # What obsoletes a locked package would take its place: the real plugin excludes it, too.
        locked_packages = self.base.sack.query().filter(name=list(locked))
        obsoleting = self.base.sack.query().filter(obsoletes=locked_packages)
        self.base.sack.add_excludes(obsoleting.difference(locked_packages))
