"""Advice: what the noted reads of a table filter by, and which index or order of rows would have saved them how much.

    asked.py        the noted predicates as questions to the table of now, and what each reads today
    samples.py      what some file slices hold
    candidates.py   every index that could help, judged on them
    orders.py       every order of rows, tried on them
    costs.py        what building and keeping takes
    report.py       what comes of it
    run.py          all of it, and building what is recommended

Nothing is built without being asked for.
"""

from __future__ import annotations

from hudimeta.services.advice.report import Advice, Measure, Recommendation, UnusedIndex
from hudimeta.services.advice.run import advise

__all__ = ["Advice", "Measure", "Recommendation", "UnusedIndex", "advise"]
