"""Expression indexes: bounds, or a bloom filter, of an expression over a column, by file."""
