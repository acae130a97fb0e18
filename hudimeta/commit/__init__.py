"""How a write becomes visible: coordinator, publication, conflicts, markers, recovery, locks."""
