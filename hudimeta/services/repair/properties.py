"""`hoodie.properties` that a writer left damaged, or with a backup beside it: the sound one of the two becomes the file."""

from __future__ import annotations

from hudimeta.commit.session import WriteSession
from hudimeta.services.repair.findings import Finding, RepairReport
from hudimeta.table.properties import update
from hudimeta.table.properties_file import BACKUP_PATH, PROPERTIES_PATH, what_is_wrong

__all__ = ["repair_properties"]


def repair_properties(session: WriteSession, *, dry_run: bool) -> RepairReport:
    """Write the file anew from what is sound of it and of its backup, and remove the backup.

    Args:
        session: The table, which was opened by the sound one of the two.
        dry_run: Only look.

    Raises:
        TableError, CorruptFileError: Neither is sound any more.
    """
    with session.lock.held():
        wrong, has_backup = what_is_wrong(session.storage)
        findings = []
        if wrong is not None:
            cure = f"written anew from {BACKUP_PATH}" if has_backup else "written anew with its checksum"
            findings.append(Finding(PROPERTIES_PATH, wrong, cure))
        elif has_backup:
            why = "a writer that died left it, and Apache Hudi would bring it back"
            findings.append(Finding(BACKUP_PATH, why, "deleted"))
        if findings and not dry_run:
            update(session.fenced, {}, anew=True)
    return RepairReport(tuple(findings), not dry_run)
