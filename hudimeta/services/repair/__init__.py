"""Repairs of what went wrong around a table: each looks first and says what it found, then puts it right.

    findings.py     what a repair found, as a value that prints
    duplicates.py   rows with the same key in one partition
    metafiles.py    partitions without their metafile
    properties.py   hoodie.properties out of its backup
    cleans.py       damaged cleans on the timeline
    orphans.py      data files that no write owns

No repair guesses: what it cannot tell stays as it is. Each can be repeated, so that one which died is done again.
"""

from __future__ import annotations

from hudimeta.services.repair.cleans import repair_cleans
from hudimeta.services.repair.duplicates import DuplicatesPlan, DuplicatesReport, deduplicate
from hudimeta.services.repair.findings import Finding, RepairReport
from hudimeta.services.repair.metafiles import repair_metafiles
from hudimeta.services.repair.orphans import repair_orphans
from hudimeta.services.repair.properties import repair_properties

__all__ = [
    "DuplicatesPlan",
    "DuplicatesReport",
    "Finding",
    "RepairReport",
    "deduplicate",
    "repair_cleans",
    "repair_metafiles",
    "repair_orphans",
    "repair_properties",
]
