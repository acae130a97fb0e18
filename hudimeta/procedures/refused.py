"""Procedures that do not run here, each with the reason, and what to do instead."""

from __future__ import annotations

from hudimeta.procedures.procedure import Place, Procedure

__all__ = ["PROCEDURES"]

_SYNC = "hudimeta keeps no tables in a Hive metastore. Register the table with CREATE TABLE … USING hudimeta LOCATION."
_AUDIT = (
    "Only writers with Hudi's storage-based lock provider keep an audit of their locks; hudimeta's own lock keeps none. "
    "CALL show_timeline tells who wrote when."
)
_BUCKETS = "A table keeps the number of buckets that it was made with. Write its rows to a new table with another number."
_BOOTSTRAP = "In Python hudimeta.bootstrap(source, path, …) makes one; INSERT INTO … SELECT writes the rows anew."
_TABLE = "@table string, @path string"


def _refused(name: str, takes: str, gives: str, doc: str, why: str) -> Procedure:
    return Procedure(name, takes, gives, doc, place=Place.NOWHERE, why=why)


def _later(name: str, takes: str, gives: str, doc: str, why: str) -> Procedure:
    return Procedure(name, takes, gives, doc, place=Place.NOT_YET, why=why)


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
        "partition_bucket_index_manager",
        "@table string!, overwrite string, bucket_number int = -1, add string, dry_run boolean = true, rollback string, "
        "show_config boolean = false, rule string = 'regex', options string",
        "result string, operation string, details string",
        "Give partitions different numbers of buckets.",
        _BUCKETS,
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
    _later(
        "run_bootstrap",
        "@table string!, table_type string!, bootstrap_path string!, base_path string!, rowKey_field string!, "
        "base_file_format string = 'PARQUET', partition_path_field string = '', "
        "bootstrap_index_class string = 'org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex', "
        "selector_class string = 'org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector', "
        "key_generator_class string = 'org.apache.hudi.keygen.SimpleKeyGenerator', "
        "full_bootstrap_input_provider string = 'org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider', "
        "schema_provider_class string = '', "
        "payload_class string = 'org.apache.hudi.common.model.OverwriteWithLatestAvroPayload', parallelism int = 1500, "
        "enable_hive_sync boolean = false, props_file_path string = '', bootstrap_overwrite boolean = false, options string",
        "status int",
        "Make a table over Parquet files that stay where they are.",
        _BOOTSTRAP,
    ),
    _later(
        "show_bootstrap_mapping",
        f"{_TABLE}, partition_path string = '', file_ids string = '', limit int = 10, sort_by string = 'partition', "
        "desc boolean = false, filter string = ''",
        "partition string, file_id string, source_base_path string, source_partition string, source_file string",
        "From which source each file group of a bootstrapped table comes.",
        _BOOTSTRAP,
    ),
    _later(
        "show_bootstrap_partitions",
        f"{_TABLE}, filter string = ''",
        "indexed_partitions string",
        "The partitions of a bootstrapped table.",
        _BOOTSTRAP,
    ),
)
