"""Base files: footers, statistics from the rows themselves, and the recipe by which they are written."""

from hudimeta.formats.parquet.bounds import BoundsOfColumns, column_bounds, leaf_names
from hudimeta.formats.parquet.footer import ParquetFooter, read_footer
from hudimeta.formats.parquet.key_column import read_key_column
from hudimeta.formats.parquet.seal import blank_entries, sealed_file
from hudimeta.formats.parquet.verified import open_verified, verify_parquet_file
from hudimeta.formats.parquet.writer import (
    BaseFileSummary,
    BaseFileWriter,
    BloomSettings,
    ParquetSettings,
    write_base_file,
)

__all__ = [
    "BaseFileSummary",
    "BaseFileWriter",
    "BloomSettings",
    "BoundsOfColumns",
    "ParquetFooter",
    "ParquetSettings",
    "blank_entries",
    "column_bounds",
    "leaf_names",
    "open_verified",
    "read_footer",
    "read_key_column",
    "sealed_file",
    "verify_parquet_file",
    "write_base_file",
]
