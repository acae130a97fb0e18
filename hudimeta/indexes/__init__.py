"""Indexes: finding rows, leaving files out, keeping each in step with commits; one package a kind."""
