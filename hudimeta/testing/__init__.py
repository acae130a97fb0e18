"""What tests of a table need, ours and yours: its invariants, a model to compare with, and tables made in one line."""

__all__ = [
    "builders",  # tables made in one line
    "indexes",  # indexes know every row
    "inspection",  # what a table consists of
    "invariants",  # what must be true of every table after every step
    "key_indexes",  # indexes of keys against the rows
    "model",  # a table as a dictionary, to compare with
    "simulation",  # many writers and readers at once, in an order that a seed says
    "statistics",  # bounds enclose every value
]
