"""`hudimeta …` in a shell: one module a group of commands, over the public API. What a table is, no module here knows.

start.py        the console script; says what to install where click is missing
root.py         the groups, each imported when it is asked for
metadata.py     RFC-15's commands about the metadata table
tables.py       show, history, maintain, call
given.py        what every command takes: the path, options, --json
output.py       text for people, JSON for programs
exits.py        exit codes, and which error means which
"""

__all__ = [
    "start",  # the console script
]
