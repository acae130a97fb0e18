"""HFile version 3, the sorted key-value file of Hudi's metadata table: reader and writer."""

from hudimeta.formats.hfile.cells import KeyValues, RawCells
from hudimeta.formats.hfile.layout import MAX_KEY_BYTES, ChecksumType, Compression
from hudimeta.formats.hfile.range_reader import BytesRange, RangeReader, StorageRange
from hudimeta.formats.hfile.reader import HFileReader
from hudimeta.formats.hfile.writer import DEFAULT_BLOCK_SIZE, HFileInfo, HFileWriter, Packing, write_hfile

__all__ = [
    "DEFAULT_BLOCK_SIZE",
    "MAX_KEY_BYTES",
    "BytesRange",
    "ChecksumType",
    "Compression",
    "HFileInfo",
    "HFileReader",
    "HFileWriter",
    "KeyValues",
    "Packing",
    "RangeReader",
    "RawCells",
    "StorageRange",
    "write_hfile",
]
