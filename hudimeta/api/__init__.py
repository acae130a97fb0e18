"""What people touch in Python: `Table`, its verbs, its metadata."""
