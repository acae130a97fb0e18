"""Making a table of a dataset of Parquet or ORC files that is there already.

    plan.py        what lies in the source, and what becomes of each partition
    skeletons.py   METADATA_ONLY: files of meta columns, whose other columns stay in the source
    run.py         both modes, and how one that died is finished

The rows of METADATA_ONLY partitions are not copied: the table refers to the source, which must stay as it is.
"""

from __future__ import annotations

from hudimeta.services.bootstrapping.plan import BootstrapMode, BootstrapPlan, SourcePartition
from hudimeta.services.bootstrapping.run import BootstrapReport, bootstrap

__all__ = ["BootstrapPlan", "BootstrapReport", "BootstrapMode", "SourcePartition", "bootstrap"]
