"""Measures every claim against its rivals, both sides in one run on this machine: `python -m benchmarks --help`.

One module a claim (`p01_…` to `p17_…`), each with its cases. A case has sides: ours first, then rivals. Every side runs in a
process of its own, so that memory, imports and caches of one do not help or hurt another. `doors.py` reads a table in every
way, `written.py` makes tables of rows, `synthetic.py` and `synthetic_keys.py` make tables that exist only as metadata.
"""
