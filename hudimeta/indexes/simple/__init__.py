"""The simple."""
