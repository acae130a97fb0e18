"""Apache Hudi tables in Python: Arrow in, Arrow out, no Spark and no Java needed.

>>> import hudimeta
>>> table = hudimeta.Table("/data/trips")                                   # doctest: +SKIP
>>> table.scan(where="fare > 60", columns=["id", "fare"]).to_table()        # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudimeta.api.bootstrapping import bootstrap
    from hudimeta.api.table import Table
    from hudimeta.commit.report import CommitReport
    from hudimeta.config import HudiWarning
    from hudimeta.errors import HudiError
    from hudimeta.indexes.scan_report import ScanReport
    from hudimeta.read.blobs import read_blobs
    from hudimeta.read.scan import Scan
    from hudimeta.read.scan_plan import ScanPlan
    from hudimeta.read.split import Split, read_split

__version__ = "0.2.0"

__all__ = [
    "CommitReport",
    "HudiError",
    "HudiWarning",
    "Scan",
    "ScanPlan",
    "ScanReport",
    "Split",
    "Table",
    "__version__",
    "bootstrap",
    "errors",
    "read_blobs",
    "read_split",
]

_HOMES = {
    "CommitReport": "hudimeta.commit.report",
    "HudiError": "hudimeta.errors",
    "HudiWarning": "hudimeta.config",
    "Scan": "hudimeta.read.scan",
    "ScanPlan": "hudimeta.read.scan_plan",
    "ScanReport": "hudimeta.indexes.scan_report",
    "Split": "hudimeta.read.split",
    "Table": "hudimeta.api.table",
    "bootstrap": "hudimeta.api.bootstrapping",
    "read_blobs": "hudimeta.read.blobs",
    "read_split": "hudimeta.read.split",
}
"""Where each name lives; imported when first asked for, so that `import hudimeta` costs next to nothing."""


def __getattr__(name: str) -> Any:
    import importlib

    if name == "errors":
        return importlib.import_module("hudimeta.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'hudimeta' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
