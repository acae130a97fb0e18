"""What people touch in Python: `Table`, its verbs, its metadata."""

__all__ = [
    "bootstrapping",  # a table out of a dataset
    "indexes",  # `table.indexes`
    "metadata",  # `table.metadata`
    "plain_write",  # a plain write of Spark, from its first task to its commit
    "row_verbs",  # verbs that take rows, for every face
    "service_verbs",  # the services under their names on a table, for every face
    "services",  # `table.services`
    "table",  # `hudimeta.Table`
    "verbs",  # one function a verb, for every face
]
