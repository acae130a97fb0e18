"""Moving a table to another version, 6 → 8 → 9 and 9 → 8, never but by an explicit verb.

    property_changes.py   what hoodie.properties says otherwise
    old_timeline.py       the timeline of version 6 in the form of version 8
    plan.py               what a move will do, as a value; what is remembered of it until it is over
    run.py                upgrade, downgrade

Each step is decided by one request, which replaces the properties: before it the table has the old version, after it the new
one. A process that dies before is repeated by the next call; what one that died afterwards left to do is done by the next call.
"""

from __future__ import annotations

from hudimeta.services.versions.plan import VersionPlan, VersionReport
from hudimeta.services.versions.run import change_version, plan_version

__all__ = ["VersionPlan", "VersionReport", "change_version", "plan_version"]
