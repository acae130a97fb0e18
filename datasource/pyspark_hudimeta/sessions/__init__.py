"""Sessions that are attached without a line of Python in the job: `python -m pyspark_hudimeta shell | submit | sql`."""

__all__ = [
    "command",  # the command line
]
