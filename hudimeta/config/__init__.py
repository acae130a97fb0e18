"""Options: their names, types, defaults and meanings."""

from hudimeta.config.arguments import checked, checked_call
from hudimeta.config.column_names import name_parts, quoted_name
from hudimeta.config.near_misses import SQL_WORDS, right_name
from hudimeta.config.of_reads import check_of_a_write, refuse_on_write, said_of_reads
from hudimeta.config.options import OPTIONS
from hudimeta.config.registry import HudiWarning, NotDone, Option, OptionRegistry, Options

__all__ = [
    "OPTIONS",
    "SQL_WORDS",
    "HudiWarning",
    "NotDone",
    "Option",
    "Options",
    "OptionRegistry",
    "check_of_a_write",
    "checked",
    "checked_call",
    "name_parts",
    "options",  # the options themselves
    "quoted_name",
    "refuse_on_write",
    "right_name",
    "said_of_reads",
]
