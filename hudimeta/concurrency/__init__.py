"""Writers side by side: the table lock and the check for conflicts."""
