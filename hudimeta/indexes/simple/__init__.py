"""No index: keys are found by reading those of the files that may hold them."""

__all__ = [
    "look_up",  # finds rows by key
]
