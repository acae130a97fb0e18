"""Avro as Hudi uses it: container files on the timeline, bare datums in log blocks."""
