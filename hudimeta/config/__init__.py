"""Options: their names, types, defaults and meanings."""

from hudimeta.config.near_misses import SQL_WORDS
from hudimeta.config.options import OPTIONS
from hudimeta.config.registry import HudiWarning, NotDone, Option, Options, Registry

__all__ = ["OPTIONS", "SQL_WORDS", "HudiWarning", "NotDone", "Option", "Options", "Registry"]
