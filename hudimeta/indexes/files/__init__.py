"""The file listing of the metadata table, which every commit keeps."""

__all__ = [
    "keep",  # keeps it in step with commits
]
