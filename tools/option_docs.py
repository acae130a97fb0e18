"""Write docs/options.md from the option registry: `python tools/option_docs.py`."""

from __future__ import annotations

from pathlib import Path

from hudimeta.config import OPTIONS

TARGET = Path(__file__).resolve().parent.parent / "docs" / "options.md"
HEAD = """# Options

Names are Hudi's where Hudi has one; ours alone begin with `hudimeta.`. They go to `hudimeta.Table(path, options={...})`, to
`spark.read.format("hudimeta").option(...)` and to `df.write.format("hudimeta").option(...)`. Case does not matter. An unknown
`hudimeta.*` option, and a `hoodie.*` option that is nearly a known one, is an error that names the closest; other unknown
options are reported once and ignored. This page is written by `tools/option_docs.py`.

| option | default | allowed | meaning |
|---|---|---|---|
"""


def text() -> str:
    """The page."""
    rows = []
    for option in OPTIONS:
        default = option.default
        shown = "" if default in (None, ()) else str(default).lower() if isinstance(default, bool) else str(default)
        names = f"`{option.key}`" + "".join(f"<br>`{alias}`" for alias in option.aliases)
        meaning = option.doc + (" Not done yet: any other value is refused." if option.refused else "")
        rows.append(f"| {names} | {shown and f'`{shown}`'} | {option.allowed} | {meaning} |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
