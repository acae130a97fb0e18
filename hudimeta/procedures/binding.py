"""The arguments of a call beside the parameters of its procedure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hudimeta.errors import ConfigError
from hudimeta.procedures.procedure import Parameter, Procedure

__all__ = ["bind"]


def bind(procedure: Procedure, positional: Sequence[Any], named: Mapping[str, Any], *, on_table: bool) -> dict[str, Any]:
    """Every parameter with its value: what was given, or its default.

    Args:
        procedure: What is called.
        positional: Values of its first parameters, in their order.
        named: Values of others by parameter, in any case.
        on_table: The call is on a table object: parameters that name the table are left out. Where a procedure takes no table
            but a path, that may still name a folder of the table.

    Raises:
        ConfigError: An argument too many, too few, twice, of no parameter or of another type.
    """
    taken = [p for p in procedure.parameters if not (on_table and p.names_table and procedure.takes_table)]
    if len(positional) > len(taken):
        raise ConfigError(procedure.name, f"{len(positional)} arguments", _known(procedure, taken))
    by_name = {p.name.lower(): p for p in taken}
    given = {p.name: p.read(value) for p, value in zip(taken, positional, strict=False)}
    for name, value in named.items():
        parameter = by_name.get(name.lower())
        if parameter is None:
            raise ConfigError(name, value, _known(procedure, taken))
        if parameter.name in given:
            raise ConfigError(name, value, f"one value for {parameter.name}")
        given[parameter.name] = parameter.read(value)
    for parameter in taken:
        if parameter.required and not (on_table and parameter.names_table) and given.get(parameter.name) is None:
            raise ConfigError(parameter.name, None, f"a value: {procedure.name} needs it", f"Call {procedure.signature}.")
    defaults = {p.name: p.default for p in procedure.parameters}
    return {**defaults, **{name: value for name, value in given.items() if value is not None}}


def _known(procedure: Procedure, taken: Sequence[Parameter]) -> str:
    names = ", ".join(parameter.name for parameter in taken)
    return f"a parameter of {procedure.name}: {names or 'it has none'}"
