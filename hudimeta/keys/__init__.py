"""Record keys, partition paths and meta columns: what a row is called and where it lives."""

from hudimeta.keys.generator import FIRST_VERSION_WITH_PREFIX, NEW_ENCODING, PATH_COLUMN, KeyGenerator, PartitionField
from hudimeta.keys.kinds import KeyGeneratorType
from hudimeta.keys.meta_fields import (
    FILE_NAME_COLUMN,
    add_meta_columns,
    drop_meta_columns,
    hide_meta_columns,
    sequence_numbers,
    with_file_name,
)
from hudimeta.keys.partition_path import DEFAULT_PARTITION, check_new_partition, escape, is_readable_by_hudi, unescape
from hudimeta.keys.partition_values import PartitionLayout, partition_values, type_of
from hudimeta.keys.record_key import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER, generated_keys

__all__ = [
    "FILE_NAME_COLUMN",
    "DEFAULT_PARTITION",
    "EMPTY_PLACEHOLDER",
    "FIRST_VERSION_WITH_PREFIX",
    "NEW_ENCODING",
    "NULL_PLACEHOLDER",
    "KeyGenerator",
    "KeyGeneratorType",
    "PATH_COLUMN",
    "PartitionField",
    "PartitionLayout",
    "add_meta_columns",
    "check_new_partition",
    "drop_meta_columns",
    "escape",
    "generated_keys",
    "hide_meta_columns",
    "is_readable_by_hudi",
    "moment_text",  # timestamps in partition paths that are texts
    "partition_metafile",  # the file by which Java finds a partition
    "partition_values",
    "sequence_numbers",
    "timestamp_partition",  # partition paths that are dates
    "type_of",
    "unescape",
    "with_file_name",
]
