"""Bytes to values and back: one module or package per file format, none of which knows what a table is."""

__all__ = [
    "arrow_ipc",  # Arrow tables as bytes
    "avro",  # Avro as Hudi uses it
    "base_file",  # rows of base files, of either format
    "bloom",  # Hudi's bloom filters
    "bulk_texts",  # columns of texts as the bytes that they are
    "groups",  # minima, maxima and sums of groups of rows
    "hfile",  # the sorted key-value file of the metadata table
    "json_text",  # JSON that somebody else wrote
    "log",  # log files
    "one_apart",  # names that a flipped bit makes of others
    "parquet",  # base files, and what their footers say
    "plain_arrays",  # Arrow arrays of NumPy arrays and lists
    "required_fields",  # fields that are not null, below structs that are
    "properties",  # Java's properties text
    "seal",  # checksums of small text files
    "vectors",  # columns of lists of one length
]
