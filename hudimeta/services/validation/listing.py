"""Is `files` what lies on storage, files of unfinished writes apart, and do both make the same file slices?"""

from __future__ import annotations

from hudimeta.cached import cached_property
from hudimeta.services.validation.result import CheckResult, Difference, Findings
from hudimeta.services.validation.subject import Subject
from hudimeta.snapshot.listing_check import ListingPair
from hudimeta.table.slices import build_slices

__all__ = ["Listings"]

_SLICE = ("partition_path", "file_id", "base_file", "log_files")


class Listings:
    """The checks of the partition `files`; storage is listed once for both."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @cached_property
    def _pair(self) -> ListingPair:
        return ListingPair(self._subject.snapshot)

    def check_files(self) -> CheckResult:
        """Partitions, names and sizes of the files of completed writes."""
        pair = self._pair
        findings = Findings(compared=len(pair.stored))
        findings.differences += [Difference(d.what, d.count, d.examples) for d in pair.differences()]
        known = set(self._subject.metadata.partitions().to_pylist())
        found = set(pair.stored["partition_path"].unique().to_pylist())
        findings.wrong("partitions with files that are not listed", sorted(found - known))
        empty = sorted(known - found)
        if empty:
            findings.notes.append(f"{len(empty)} listed partitions have no file")
        return findings.result("files")

    def check_slices(self) -> CheckResult:
        """The latest file slices, made of the one listing and of the other."""
        visibility = self._subject.snapshot.visibility
        ours, theirs = (
            {(p, i): (b, tuple(logs or ())) for p, i, b, logs in zip(*(t[c].to_pylist() for c in _SLICE), strict=True)}
            for t in (build_slices(listing, visibility) for listing in (self._pair.listed, self._pair.stored))
        )
        findings = Findings(compared=len(theirs))
        findings.wrong("file groups that storage does not have", [f"{p}/{i}" for p, i in sorted(ours.keys() - theirs.keys())])
        findings.wrong("file groups that are not listed", [f"{p}/{i}" for p, i in sorted(theirs.keys() - ours.keys())])
        both = sorted(ours.keys() & theirs.keys())
        findings.wrong("file groups with other files", [f"{p}/{i}" for p, i in both if ours[p, i] != theirs[p, i]])
        return findings.result("file slices", "file groups")
