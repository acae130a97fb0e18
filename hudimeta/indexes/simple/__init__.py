"""No index: keys are found by reading those of the files that may hold them."""
