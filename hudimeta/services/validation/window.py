"""Does what is kept of the record window tell the keys of the slices of which it speaks?"""

from __future__ import annotations

import numpy as np

from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.record_window.chains import slice_print
from hudimeta.indexes.record_window.runs import Prints, whole_prints
from hudimeta.indexes.record_window.window import kept_prints
from hudimeta.services.validation.keyed import KeyedIndexes
from hudimeta.services.validation.result import CheckResult, Findings
from hudimeta.services.validation.subject import Subject, Unreadable

__all__ = ["RECORD_WINDOW", "check_window"]

RECORD_WINDOW = "record_window"


def check_window(subject: Subject, keyed: KeyedIndexes) -> CheckResult:
    """Both ways, of each slice that it knows: every live row's key is kept, and no other.

    Args:
        subject: The table.
        keyed: Has read its keys.
    """
    findings = Findings()
    slices = {f"{one.partition_path}\0{one.file_id}": number for number, one in enumerate(subject.slices)}
    now = {
        name: slice_print(one.base_file or "", one.log_files, one.log_sizes)
        for name, one in zip(slices, subject.slices, strict=True)
    }
    known = kept_prints(subject.snapshot.storage, now)
    lacking: list[str] = []
    extra: list[str] = []
    for name, stated in known.items():
        rows = keyed.keys_of_slices[slices[name]]
        if isinstance(rows, Unreadable):
            findings.wrong("files that cannot be read", [rows.what])
            continue
        keys = single_array(rows["record_key"])
        prints = Prints.of(keys)
        live = whole_prints(prints.first, prints.second)
        findings.compared += len(keys)
        lacking += keys.take(prints.order[~np.isin(live, stated)]).to_pylist()
        extra += [f"one more of {name.replace(chr(0), '/')}"] * len(np.setdiff1d(stated, live))
    findings.wrong("live keys that it lacks", lacking)
    findings.wrong("keys of no row", extra)
    if len(known) < len(now):
        findings.notes.append(f"{len(now) - len(known):,} file slices are not kept in it, or are older")
    return findings.result(RECORD_WINDOW, "keys")
