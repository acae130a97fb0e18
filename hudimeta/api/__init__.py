"""What people touch in Python: `Table`, its verbs, its metadata."""

__all__ = [
    "plain_write",  # a plain write of Spark, from its first task to its commit
    "table",  # `hudimeta.Table`
    "verbs",  # one function a verb, for every face
]
