"""Writes of any size, done by tasks: rows are laid aside where they will be needed, looked up, placed, merged and indexed."""
