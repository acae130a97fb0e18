"""File slices to rows: base files, log parts, merge rules, spilling."""
