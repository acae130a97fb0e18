"""Making and removing indexes of a table that exists, as plans that are values.

    plan.py      what is asked for: a metadata partition and its definition, checked against the table
    build.py     create_index: built under the table lock, visible by the last step
    beside_writers.py   create_beside: the same by a plan on the timeline, of which the long part is done without the lock
    drop.py      drop_index and drop_partition: out of the properties first, then off storage
    record_window.py   the index of the last days' keys, beside the metadata table
    resizing.py  more file groups for the record index, made from the index alone
    rebuild.py   every file group of the metadata table made anew beside the old ones, validated, then switched to

None of them changes rows. A process that dies leaves the table as it was, or with the change done; what it left on storage is
removed by whoever makes the same index next.
"""

from __future__ import annotations

from hudimeta.commit.index_build import IndexReport, create_index
from hudimeta.indexes.plan import IndexPlan, plan_index
from hudimeta.services.indexing.beside_writers import create_beside
from hudimeta.services.indexing.drop import drop_index
from hudimeta.services.indexing.rebuild import RebuildReport, rebuild
from hudimeta.services.indexing.record_window import create_window, drop_window
from hudimeta.services.indexing.resizing import resize

__all__ = [
    "IndexPlan",
    "IndexReport",
    "RebuildReport",
    "beside_writers",  # building an index by a plan on the timeline
    "create_beside",
    "create_index",
    "create_window",
    "drop_index",
    "drop_window",
    "plan_index",
    "proof",  # recording that indexes lack no row
    "rebuild",
    "resize",
]
