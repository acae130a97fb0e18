"""Times to live of their own for some partitions (`hudimeta.partition.ttl.rules`).

    region=eu/,30;region=us/,7,KEEP_BY_CREATION_TIME;^test,0

Each rule has a regular expression, days, and, if it is not that of the table, the name of a strategy. The first that is found
in a partition's path counts; where none is, the days and the strategy of `hoodie.partition.ttl.strategy.*` do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError
from hudimeta.predicate import search_regex

__all__ = ["BY_CREATION", "TtlRule", "TtlRules"]

BY_CREATION, BY_WRITES = "KEEP_BY_CREATION_TIME", "KEEP_BY_TIME"
_FORM = f"<regular expression>,<days>[,{BY_WRITES} or {BY_CREATION}];…, without commas and semicolons in the expressions"


@dataclass(frozen=True)
class TtlRule:
    """For how long partitions are kept.

    Attributes:
        days: 0 for ever.
        strategy: From when they count: `KEEP_BY_TIME` or `KEEP_BY_CREATION_TIME`.
        pattern: Found in the paths that it is about; "" in all.
    """

    days: int
    strategy: str
    pattern: str = ""

    def __str__(self) -> str:
        where = f" where {self.pattern} is found" if self.pattern else ""
        return f"{self.strategy}, {self.days:,} days{where}"


@dataclass(frozen=True)
class TtlRules:
    """All rules of a table.

    Attributes:
        own: Those of some partitions, the first of which counts.
        rest: Of all other partitions.
    """

    own: tuple[TtlRule, ...]
    rest: TtlRule

    @classmethod
    def of(cls, options: Options) -> TtlRules:
        """The rules that options give.

        Raises:
            ConfigError: Rules of another form, or a regular expression that is none.
        """
        rest = TtlRule(max(0, options.get(keys.TTL_DAYS)), options.get(keys.TTL_STRATEGY) or BY_WRITES)
        text = options.get(keys.TTL_RULES) or ""
        own = tuple(_rule(one, rest.strategy, text) for one in text.rstrip(";").split(";") if text)
        for rule in own:
            search_regex(pa.array([], pa.string()), rule.pattern)
        return cls(own, rest)

    @property
    def expire_nothing(self) -> bool:
        """True when every partition is kept for ever."""
        return not any(rule.days for rule in (*self.own, self.rest))

    def of_partitions(self, paths: Iterable[str]) -> dict[str, TtlRule]:
        """The rule of each partition, by its path."""
        names = list(paths)
        found = dict.fromkeys(names, self.rest)
        for rule in reversed(self.own):
            hits = search_regex(pa.array(names, pa.string()), rule.pattern).to_pylist()
            found |= {name: rule for name, hit in zip(names, hits, strict=True) if hit}
        return found

    def __str__(self) -> str:
        return "; ".join(map(str, (*self.own, self.rest) if self.own else (self.rest,)))


def _rule(text: str, usual: str, whole: str) -> TtlRule:
    pattern, *others = (part.strip() for part in text.split(","))
    strategy = others[1].upper() if len(others) > 1 else usual
    fits = 0 < len(others) <= 2 and others[0].isascii() and others[0].isdigit() and strategy in (BY_WRITES, BY_CREATION)
    if not pattern or not fits:
        raise ConfigError(keys.TTL_RULES.key, whole, _FORM)
    return TtlRule(int(others[0]), strategy, pattern)
