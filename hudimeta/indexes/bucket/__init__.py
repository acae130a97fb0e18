"""The bucket."""
