"""The metadata table: what a table consists of and which values lie where, kept as records in HFiles beside the table."""
