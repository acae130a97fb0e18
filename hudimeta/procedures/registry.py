"""Every procedure by its name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from hudimeta.errors import ConfigError
from hudimeta.procedures import (
    bootstrapping,
    buckets,
    changes,
    commits,
    files,
    history,
    metadata_table,
    refused,
    repairs,
    services,
)
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows

__all__ = ["PROCEDURES", "find", "help_text"]


def find(name: str) -> Procedure:
    """The procedure of a name, in any case.

    Raises:
        ConfigError: There is none; the closest one is named.
    """
    found = PROCEDURES.get(name.lower())
    if found is None:
        close = difflib.get_close_matches(name.lower(), PROCEDURES, 1)
        hint = f"Did you mean {close[0]}?" if close else ""
        raise ConfigError("procedure", name, "the name of a procedure: CALL help() lists them", hint)
    return found


def help_text(name: str | None = None) -> str:
    """All procedures with what they do; of one, its parameters and columns too."""
    if not name:
        return "\n".join(f"{one.name}\t{one.doc}" for one in PROCEDURES.values())
    one = find(name.strip())
    lines = [one.doc, *filter(None, [one.note, one.why]), "parameters:"]
    lines += [f"\t{p}{'' if not p.required else ' (required)'}" for p in one.parameters]
    types = dict(zip(one.schema.names, (text.rsplit(" ", 1)[1] for text in one.gives.split(", ")), strict=True))
    return "\n".join([*lines, "outputType:", *(f"\t{column} {kind}" for column, kind in types.items())])


def _help(call: ProcedureCall) -> Rows:
    return [(help_text(call["cmd"]),)]


_HELP = Procedure("help", "cmd string", "result string", "Tell of all procedures, or of one.", _help)
_GROUPS = (commits, history, files, metadata_table, services, changes, buckets, repairs, bootstrapping, refused)

PROCEDURES: Mapping[str, Procedure] = {
    one.name: one for one in sorted([_HELP, *(p for group in _GROUPS for p in group.PROCEDURES)], key=lambda one: one.name)
}
"""By name, in its order."""
