"""Real Apache Hudi for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.interop.apache_hudi import SHORT_LIVED, ApacheHudi, Installation


@pytest.fixture(scope="session")
def hudi() -> Iterator[ApacheHudi]:
    """One process of Apache Hudi for the whole run, which `make interop` installs."""
    installation = Installation.find()
    if installation is None:
        if os.environ.get("HUDIMETA_INTEROP_PYTHON"):
            pytest.fail("the interoperability environment is named by HUDIMETA_INTEROP_PYTHON but is not complete")
        pytest.fail("Apache Hudi is not installed here: run `make interop`")
    with ApacheHudi(installation, flags=SHORT_LIVED) as process:
        yield process
