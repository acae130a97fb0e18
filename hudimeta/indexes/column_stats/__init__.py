"""The column stats."""
