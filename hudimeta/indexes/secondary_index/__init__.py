"""Secondary indexes: the record keys of each value of a column."""
