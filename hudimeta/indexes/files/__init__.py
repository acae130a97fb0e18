"""The file listing of the metadata table, which every commit keeps."""
