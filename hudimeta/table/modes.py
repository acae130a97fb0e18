"""How a table wants its metadata table used: its own word in `hoodie.properties`, where options say nothing.

Apache Hudi does not know these properties and keeps them: its writers and readers have options of their own for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudimeta.config.options import LISTING_RETURNED, METADATA_ENABLE

if TYPE_CHECKING:
    from hudimeta.config import Option, Options
    from hudimeta.table.properties import TableProperties

__all__ = ["ENABLE", "VALIDATE", "MetadataModes"]

ENABLE, VALIDATE = "hudimeta.table.metadata.enable", "hudimeta.table.metadata.validate"


@dataclass(frozen=True)
class MetadataModes:
    """How the metadata table is used.

    Attributes:
        enabled: Reads plan from it, and writes make it where it is not there. Where it is there, writes keep it either way.
        validated: Reads plan from a listing of storage, and only compare it with the metadata table.
        disabled_by: The option or property that switches it off; "" where nothing does.
    """

    enabled: bool
    validated: bool
    disabled_by: str = ""

    @classmethod
    def of(cls, options: Options, properties: TableProperties) -> MetadataModes:
        """What an option says goes first, then the table's word, then what the machine says."""
        enabled, by = _chosen(options, properties, METADATA_ENABLE, ENABLE)
        validated, _ = _chosen(options, properties, LISTING_RETURNED, VALIDATE)
        return cls(enabled, validated, "" if enabled else by)


def _chosen(options: Options, properties: TableProperties, option: Option[bool], key: str) -> tuple[bool, str]:
    """A flag, and who says so."""
    if options.is_set(option) or key not in properties:
        return options.get(option), option.key
    return properties.get(key, "").strip().lower() == "true", key
