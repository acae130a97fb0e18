"""Finding rows by key: which file group holds it."""
