"""Which index a write uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError
from hudimeta.indexes.choice import choose_index
from hudimeta.table.properties import TableProperties


def test_an_index_of_the_properties_that_nobody_knows_is_refused_by_name(tmp_path: Path) -> None:
    properties = TableProperties({"hoodie.index.type": "HBASE"})
    with pytest.raises(ConfigError, match=r"HBASE.*allowed is SIMPLE, GLOBAL_SIMPLE"):
        choose_index(OPTIONS.read({}), properties, lambda: False, dict)
