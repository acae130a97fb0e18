"""The one tree of errors: each carries its facts as attributes, and a next step in its text.

The text of every error has the form ``HUDIMETA_<CODE>: <what happened>. <what to do next>``. The code stands in front because
Spark hands only the text of a Python exception to the user, never its class.
"""

from hudimeta.errors.of_commit import (
    ClusteringPending,
    CommitConflict,
    CommitError,
    CommitOutcomeUnknown,
    DuplicateKeys,
    InstantExists,
    LockError,
    LockLost,
    LockTimeout,
    UndoError,
)
from hudimeta.errors.of_input import (
    ConfigError,
    PredicateError,
    SchemaError,
    SchemaMismatch,
    SchemaUnknown,
    UnsupportedEvolution,
)
from hudimeta.errors.of_storage import AlreadyExists, FileRemoved, NotFound, OutsideTable, StaleList, StorageError, Throttled
from hudimeta.errors.of_table import (
    CorruptFileError,
    IndexDropped,
    IndexNotReady,
    MetadataError,
    MetadataFileMissing,
    MetadataOutOfSync,
    PropertiesUnreadable,
    RangeLost,
    StreamDataLoss,
    TableError,
    TableNotFound,
    UnsupportedFeature,
    UnsupportedTableVersion,
)
from hudimeta.errors.tree import HudiError, MissingLibrary, ValidationFailed

__all__ = [
    "AlreadyExists",
    "ClusteringPending",
    "CommitConflict",
    "CommitError",
    "CommitOutcomeUnknown",
    "ConfigError",
    "CorruptFileError",
    "DuplicateKeys",
    "FileRemoved",
    "HudiError",
    "IndexDropped",
    "IndexNotReady",
    "InstantExists",
    "LockError",
    "LockLost",
    "LockTimeout",
    "MetadataError",
    "MetadataFileMissing",
    "MetadataOutOfSync",
    "MissingLibrary",
    "NotFound",
    "OutsideTable",
    "PredicateError",
    "SchemaError",
    "SchemaMismatch",
    "SchemaUnknown",
    "StaleList",
    "StorageError",
    "StreamDataLoss",
    "TableError",
    "TableNotFound",
    "Throttled",
    "PropertiesUnreadable",
    "RangeLost",
    "UndoError",
    "UnsupportedEvolution",
    "UnsupportedFeature",
    "UnsupportedTableVersion",
    "ValidationFailed",
]
