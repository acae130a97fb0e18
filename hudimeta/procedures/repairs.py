"""Procedures that repair a table; each only looks, unless `dry_run => false` says to go on."""

from __future__ import annotations

from hudimeta.errors import ConfigError
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows, RunPlace
from hudimeta.services import repair
from hudimeta.table.discovery import PARTITION_METAFILE, folders_with_files

__all__ = ["PROCEDURES"]

_NEWEST = ("insert_type", "upsert_type")


def _add_partition_meta(call: ProcedureCall) -> Rows:
    done = not call["dry_run"]
    report = repair.repair_metafiles(call.session(), dry_run=call["dry_run"])
    lacking = {finding.path.removesuffix(PARTITION_METAFILE).rstrip("/") for finding in report.findings}
    folders = {folder for folder, _ in folders_with_files(call.storage)} | lacking
    return [
        (folder, *(("No", "Repaired" if done else "None") if folder in lacking else ("Yes", "None")))
        for folder in sorted(folders)
    ]


def _corrupted_clean_files(call: ProcedureCall) -> Rows:
    repair.repair_cleans(call.session(), dry_run=False)
    return [(True,)]


def _deduplicate(call: ProcedureCall) -> Rows:
    if call["dedupe_type"] not in _NEWEST:
        hint = "The newest row of a key stays, whatever brought the others."
        raise ConfigError("dedupe_type", call["dedupe_type"], " or ".join(_NEWEST), hint)
    partitions = [call["duplicated_partition_path"]]
    return [(str(repair.deduplicate(call.session(), partitions, dry_run=call["dry_run"])),)]


def _refused(name: str, takes: str, gives: str, doc: str, why: str) -> Procedure:
    return Procedure(name, takes, gives, doc, place=RunPlace.NOWHERE, why=why)


PROCEDURES = (
    Procedure(
        "repair_add_partition_meta",
        "@table string!, dry_run boolean = true",
        "partition_path string, metadata_is_present string, action string",
        "Write the metafiles that partitions lack.",
        _add_partition_meta,
        acts=True,
    ),
    Procedure(
        "repair_corrupted_clean_files",
        "@table string!",
        "result boolean",
        "Remove damaged plans of cleans, and write damaged records of cleans anew.",
        _corrupted_clean_files,
        acts=True,
    ),
    Procedure(
        "repair_deduplicate",
        "@table string!, duplicated_partition_path string!, repaired_output_path string!, dry_run boolean = true, "
        "dedupe_type string = 'insert_type'",
        "result string",
        "Drop all but the newest of the rows of a partition that have a key in common.",
        _deduplicate,
        acts=True,
        note="It is a commit, so nothing is written to `repaired_output_path`; the newest row of a key stays.",
    ),
    _refused(
        "repair_migrate_partition_meta",
        "@table string!, dry_run boolean = true",
        "partition_path string, text_metafile_present string, base_metafile_present string, action string",
        "Write partition metafiles as base files.",
        "Metafiles are read in either form, and written as text, which every version of Apache Hudi reads.",
    ),
    _refused(
        "repair_overwrite_hoodie_props",
        "@table string!, new_props_file_path string!",
        "property string, old_value string, new_value string",
        "Replace `hoodie.properties`.",
        "What a table was made with is what its files were written by. table.repair.properties() mends a damaged file; "
        "ALTER TABLE … SET TBLPROPERTIES changes what can change.",
    ),
)
