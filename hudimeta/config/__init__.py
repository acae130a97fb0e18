"""Options: their names, types, defaults and meanings."""

from hudimeta.config.options import OPTIONS
from hudimeta.config.registry import HudiWarning, Option, Options, Registry

__all__ = ["OPTIONS", "HudiWarning", "Option", "Options", "Registry"]
