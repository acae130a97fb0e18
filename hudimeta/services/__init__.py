"""Table services: each plans first, as a value that can be printed and stored, and then executes its plan."""
