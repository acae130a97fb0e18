"""docs/cli.md: its commands run as they stand there, and answer what stands there but for figures and names of files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from hudimeta.cli.metadata import metadata
from hudimeta.cli.root import root

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def _told(text: str) -> list[str]:
    """Lines without what differs from run to run: figures, names of files, widths of columns."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}-0_[-0-9_]+", "FILE", text)
    return [re.sub(r"-?\d[\d,.]*", "N", re.sub(r" +", " ", line)).strip() for line in text.strip().splitlines()]


def test_the_page_tells_the_truth(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(compile(example.replace("/tmp/", f"{tmp_path}/"), "docs/cli.md", "exec"), names)
    ran = 0
    for session in SESSIONS:
        for command, expected in re.findall(r"^\$ hudimeta (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
            done = CliRunner().invoke(root, shlex.split(command.replace("/tmp/", f"{tmp_path}/")))
            shown = done.output.replace(f"{tmp_path}/", "/tmp/") + (f"[exit code {done.exit_code}]" if done.exit_code else "")
            assert _told(shown) == _told(expected), command
            ran += 1
    assert ran == 12


def test_the_page_names_every_command() -> None:
    named = set(re.findall(r"`metadata ([a-z-]+)`", PAGE))
    assert named == set(metadata.commands)
    assert set(re.findall(r"^\| `(\w+)(?: PATH[^`]*)?` \|", PAGE, re.MULTILINE)) >= {
        "show",
        "history",
        "maintain",
        "advise",
        "call",
    }
