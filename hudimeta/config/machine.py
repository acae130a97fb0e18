"""Options for every table of a machine: `hudi-defaults.conf`, the file that Apache Hudi reads for all its jobs.

The file in `/etc/hudi/conf` is read first, where there is one, then the one in the folder that the environment variable
HUDI_CONF_DIR names, which wins. Each line is a key and a value with `=` or blanks between them; `#` begins a comment, and
`include=other.conf` stands for the lines of that file. It is no file of a table, so that no storage of a table reads it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from hudimeta.config.texts import parse_local_path
from hudimeta.errors import ConfigError

__all__ = ["machine_options"]

FILE_NAME = "hudi-defaults.conf"
USUAL_FOLDER = Path("/etc/hudi/conf")
FOLDER_VARIABLE = "HUDI_CONF_DIR"
NOTHING: Mapping[str, str] = MappingProxyType({})


def machine_options() -> Mapping[str, str]:
    """What this machine gives to every table; keys in lower case. Read once a process and folder.

    Raises:
        ConfigError: The folder that HUDI_CONF_DIR names has no such file, a file cannot be read, or files include each other.
    """
    return _options_of(os.environ.get(FOLDER_VARIABLE) or None)


@lru_cache(maxsize=8)
def _options_of(folder: str | None) -> Mapping[str, str]:
    files = [USUAL_FOLDER / FILE_NAME] if (USUAL_FOLDER / FILE_NAME).is_file() else []
    if folder is not None and _local(folder) != USUAL_FOLDER:
        files.append(_local(folder) / FILE_NAME)
    found: dict[str, str] = {}
    for file in files:
        _add_lines(file, found, ())
    return MappingProxyType(found) if found else NOTHING


def _local(folder: str) -> Path:
    try:
        return Path(parse_local_path(folder))
    except ValueError as error:
        hint = "Copy the file to the machine and name its folder."
        raise ConfigError(FOLDER_VARIABLE, folder, "a local folder", hint) from error


def _add_lines(file: Path, found: dict[str, str], including: tuple[Path, ...]) -> None:
    if file in including:
        raise ConfigError("include", str(file), "files that do not include each other", "Remove one of the include lines.")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = f"Put the file there, or set {FOLDER_VARIABLE} to another folder."
        raise ConfigError(FOLDER_VARIABLE, str(file), f"a file of options ({error})", hint) from error
    for line in text.splitlines():
        key, value = _split(line)
        if key == "include":
            _add_lines(file.parent / value, found, (*including, file))
        elif key:
            found[key.lower()] = value


def _split(line: str) -> tuple[str, str]:
    """Key and value of a line; two empty texts for a comment and for a line that says nothing, as Hudi reads them."""
    words = " ".join(line.split())
    if not words or words.startswith("#"):
        return "", ""
    key, sign, value = words.partition("=" if "=" in words else " ")
    return (key.strip(), value.strip()) if sign else ("", "")
