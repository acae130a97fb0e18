"""Reading: predicates, planning, merging and scanning."""
