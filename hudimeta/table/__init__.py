"""The table on storage: its properties, its file names, its file groups and slices."""
