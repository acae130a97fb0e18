"""Plans of large tables in memory-mapped files: the slices of a moment, and what later commits changed.

The metadata table stays the truth. A kept plan states the instants that it rests on, and is used only where these are there
still; what came since follows from the commits themselves, and where they do not tell all, the plan is made anew.
"""

from hudimeta.plan_cache.cache import PlanCache

__all__ = ["PlanCache"]
