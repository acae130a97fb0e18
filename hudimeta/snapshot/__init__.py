"""The table at one moment: its properties, timeline, schema, listing and visible slices."""
