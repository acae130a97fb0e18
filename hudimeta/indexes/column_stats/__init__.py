"""Column statistics: bounds of columns, by file and by partition."""
