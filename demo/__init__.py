"""A walk through hudimeta on the flights that left New York in 2013: `python -m demo`."""
