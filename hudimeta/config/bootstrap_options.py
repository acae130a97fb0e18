"""Options of bootstraps: which partitions of a dataset are copied, and which are only described."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = ["BOOTSTRAP_REGEX", "BOOTSTRAP_REGEX_MODE", "BOOTSTRAP_SELECTOR"]

BOOTSTRAP_SELECTOR = OPTIONS.java_class(
    "hoodie.bootstrap.mode.selector",
    "MetadataOnlyBootstrapModeSelector",
    ["MetadataOnlyBootstrapModeSelector", "FullRecordBootstrapModeSelector", "BootstrapRegexModeSelector"],
    "Whether a bootstrap describes the files of its source, copies their rows, or does one with the partitions that a pattern "
    "matches and the other with all others.",
)
BOOTSTRAP_REGEX = OPTIONS.text(
    "hoodie.bootstrap.mode.selector.regex", ".*", "The pattern, which must match the whole path of a partition."
)
BOOTSTRAP_REGEX_MODE = OPTIONS.choice(
    "hoodie.bootstrap.mode.selector.regex.mode",
    "METADATA_ONLY",
    ["METADATA_ONLY", "FULL_RECORD"],
    "What is done with the partitions that the pattern matches.",
)
