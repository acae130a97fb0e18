"""The plain door: the Python data source that Spark finds by its name."""
