"""What tests of a table need, ours and yours: its invariants, a model to compare with, and tables made in one line."""
