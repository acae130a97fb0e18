"""The metadata table as a whole: made, brought up to date, removed, switched on and off, counted and timed."""

from __future__ import annotations

from hudimeta.services.metadata_table.life import MetadataChange, create, delete, update
from hudimeta.services.metadata_table.listing_cost import ListingCost, measure
from hudimeta.services.metadata_table.modes import set_modes
from hudimeta.services.metadata_table.stats import MetadataStats, PartitionSize, stats_of

__all__ = [
    "ListingCost",
    "MetadataChange",
    "MetadataStats",
    "PartitionSize",
    "create",
    "delete",
    "measure",
    "set_modes",
    "stats_of",
    "update",
]
