"""Procedures that do not run here, each with the reason, and what to do instead."""

from __future__ import annotations

from hudimeta.procedures.procedure import Procedure, RunPlace

__all__ = ["PROCEDURES"]

_SYNC = "hudimeta keeps no tables in a Hive metastore. Register the table with CREATE TABLE … USING hudimeta LOCATION."
_AUDIT = (
    "Only writers with Hudi's storage-based lock provider keep an audit of their locks; hudimeta's own lock keeps none. "
    "CALL show_timeline tells who wrote when."
)
_TABLE = "@table string, @path string"


def _refused(name: str, takes: str, gives: str, doc: str, why: str) -> Procedure:
    return Procedure(name, takes, gives, doc, place=RunPlace.NOWHERE, why=why)


PROCEDURES = (
    _refused(
        "hive_sync",
        "@table string!, metastore_uri string = '', username string = '', password string = '', use_jdbc string = '', "
        "mode string = '', partition_fields string = '', partition_extractor_class string = '', strategy string = '', "
        "sync_incremental string = ''",
        "result string",
        "Register the table in a Hive metastore.",
        _SYNC,
    ),
    _refused(
        "sync_validate",
        "src_table string!, dst_table string!, mode string!, hive_server_url string!, hive_pass string!, "
        "src_db string = 'rawdata', target_db string = 'dwh_hoodie', partition_cnt int = 5, hive_user string = ''",
        "result string",
        "Count the rows of a table and of its copy through Hive.",
        _SYNC,
    ),
    _refused(
        "hdfs_parquet_import",
        "table string!, table_type string!, src_path string!, target_path string!, row_key string!, partition_key string!, "
        "schema_file_path string!, command string = 'insert', retry int = 0, parallelism int = 2, props_file_path string = ''",
        "import_result int",
        "Make a table of Parquet files.",
        "Read the files and write them: spark.read.parquet(…).write.format('hudimeta')…, with bulk_insert as the operation.",
    ),
    _refused(
        "set_audit_lock",
        f"{_TABLE}, state string!",
        "table string!, audit_state string!, message string!",
        "Switch the audit of locks on or off.",
        _AUDIT,
    ),
    _refused(
        "show_audit_lock_status",
        _TABLE,
        "table string!, audit_enabled boolean!, config_path string!, audit_folder_path string!",
        "Whether locks are audited.",
        _AUDIT,
    ),
    _refused(
        "validate_audit_lock",
        _TABLE,
        "table string!, validation_result string!, transactions_validated int!, issues_found int!, details string!",
        "Look through the audit of locks.",
        _AUDIT,
    ),
    _refused(
        "cleanup_audit_lock",
        f"{_TABLE}, dry_run boolean = false, age_days int = 7",
        "table string!, files_cleaned int!, dry_run boolean!, age_days int!, message string!",
        "Delete old files of the audit of locks.",
        _AUDIT,
    ),
)
