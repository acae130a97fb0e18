"""Base files: footers, statistics from the rows themselves, and the recipe by which they are written."""

from hudimeta.formats.parquet.bounds import BoundsOfColumns, column_bounds, extremes, leaf_names, typed_scalar
from hudimeta.formats.parquet.coded_texts import coded_texts, texts_of_codes
from hudimeta.formats.parquet.footer import (
    BLOOM_TYPE_KEY,
    CALENDAR_KEY,
    MAX_KEY_KEY,
    MIN_KEY_KEY,
    ParquetFooter,
    footer_of,
    read_footer,
)
from hudimeta.formats.parquet.footer_entries import BloomSettings, footer_entries
from hudimeta.formats.parquet.key_column import read_key_column
from hudimeta.formats.parquet.moments import READ_INT96, Moments, of_any_calendar
from hudimeta.formats.parquet.seal import blank_entries, check_seal, entry_in, sealed_file
from hudimeta.formats.parquet.verified import open_verified, verify_parquet_file
from hudimeta.formats.parquet.writer import (
    BaseFileSummary,
    ParquetFileWriter,
    ParquetSettings,
    columns_anew,
    write_base_file,
)

__all__ = [
    "BLOOM_TYPE_KEY",
    "CALENDAR_KEY",
    "MAX_KEY_KEY",
    "MIN_KEY_KEY",
    "READ_INT96",
    "BaseFileSummary",
    "ParquetFileWriter",
    "BloomSettings",
    "BoundsOfColumns",
    "Moments",
    "ParquetFooter",
    "ParquetSettings",
    "blank_entries",
    "check_seal",
    "entry_in",
    "extremes",
    "coded_texts",
    "column_bounds",
    "columns_anew",
    "footer_entries",
    "footer_of",
    "known_keys",  # the bloom filter of a file's next version
    "leaf_names",
    "of_any_calendar",
    "open_verified",
    "page_counts",  # what headers of pages count
    "page_index",  # where the pages of a file lie, and their bounds
    "pages",  # some pages of a file
    "quick_columns",  # columns in a form that is decoded sooner
    "quick_decimals",
    "read_footer",
    "read_key_column",
    "sealed_file",
    "small_file",  # pages of a file as one of their own
    "texts_of_codes",
    "stitched",  # files put together from row groups of others
    "thrift",  # Thrift's compact protocol
    "typed_scalar",
    "verified",  # opening files so that damage is found
    "verify_parquet_file",
    "whole_footer",  # footers that can be changed
    "write_base_file",
]
