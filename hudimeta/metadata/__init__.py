"""The metadata table: what a table consists of and which values lie where, kept as records in HFiles beside the table."""

from hudimeta.metadata.metadata_table import MetadataTable

__all__ = ["MetadataTable"]
