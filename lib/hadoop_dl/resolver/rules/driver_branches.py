"""The driver branches of the data, and a row in place of one that the data does not have."""

from hadoop_dl.data.compat import Compat, Row
from hadoop_dl.resolver.versions import version

KINDS = {"LTSB": 0, "PB": 1}
OLDEST = 340  # the last branch of the cards before Kepler; an older driver is no driver for CUDA 8.0 or newer


def least_driver(toolkit: Row) -> str:
    """The oldest driver for a CUDA toolkit: from 11 on, that of minor version compatibility."""
    floors = [str(text) for text in (toolkit["min_driver"], toolkit["min_driver_minor_compat"]) if text]
    return min(floors, key=version)


def newest_of(row: Row, system: str = "") -> str:
    """The newest release of a branch for a system; without one in any source. latest_known is the newest known to be packaged."""
    packaged = row["releases"].get(system)
    return str(packaged[0] if packaged else row.get("latest_listed") or row["latest_known"])


def branch_of(text: str) -> str:
    return text.partition(".")[0]


class BranchRows:
    """Those with packages first, of them supported ones, long-term before production before the rest; then the newest."""

    def __init__(self, compat: Compat) -> None:
        rows = compat.rows("drivers", "branches")
        self.branches = sorted(
            rows,
            key=lambda row: (
                not row["releases"],
                row["is_eol"] is not False,
                KINDS.get(row["kind"], 2),
                -int(row["branch"]),
            ),
        )
        self.newest = max(rows, key=lambda row: int(row["branch"]))

    def of(self, text: str) -> Row | None:
        """The row of a driver's branch. A branch that the data does not have is taken for the newest older one."""
        branch = branch_of(text)
        known_row = next((row for row in self.branches if row["branch"] == branch), None)
        if known_row or not branch.isdecimal():
            return known_row
        if self.is_newer(text):
            return self.unknown_row(self.newest, text, is_eol=False)
        if int(branch) < OLDEST:
            return None
        ascending = sorted(self.branches, key=lambda row: int(row["branch"]))
        older = [row for row in ascending if int(row["branch"]) < int(branch)]
        return self.unknown_row((older or ascending[:1])[-1], text, is_eol=True)

    def is_newer(self, text: str) -> bool:
        """Whether this driver is of a branch newer than all in the data."""
        return branch_of(text).isdigit() and int(branch_of(text)) > int(self.newest["branch"])

    def unknown_row(self, nearest: Row, text: str, is_eol: bool) -> Row:
        """A row for a branch that the data does not have; it is assumed to support what the nearest one supports."""
        changes = {"branch": branch_of(text), "latest_known": text, "latest_listed": text, "kind": None}
        return {
            **nearest,
            **changes,
            "is_eol": is_eol,
            "releases": {},
            "verified": False,
            "taken_for": nearest["branch"],
        }
