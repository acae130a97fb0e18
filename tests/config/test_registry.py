"""Options: types, aliases, near misses, and what is refused."""

from __future__ import annotations

import warnings

import pytest

from hudimeta.config import OPTIONS, HudiWarning, Registry
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature


def test_values_are_typed_and_keys_have_no_case() -> None:
    options = OPTIONS.read({"HOODIE.Table.Name": "t", "hoodie.parquet.max.file.size": 1024, "hoodie.metadata.enable": False})
    assert options.get(keys.TABLE_NAME) == "t"
    assert options.get(keys.MAX_FILE_SIZE) == 1024
    assert options.get(keys.METADATA_ENABLE) is False


def test_an_alias_is_the_option_and_two_values_are_refused() -> None:
    assert OPTIONS.read({"hoodie.table.precombine.field": "ts"}).get(keys.ORDERING) == ("ts",)
    with pytest.raises(ConfigError, match="Give only"):
        OPTIONS.read({"hoodie.table.precombine.field": "ts", "hoodie.datasource.write.precombine.field": "other"})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"hudimeta.filtre": "a"}, "Did you mean hudimeta.filter?"),
        ({"hoodie.datasource.write.recordkey.fields": "a"}, "Did you mean hoodie.datasource.write.recordkey.field?"),
        ({"hoodie.metadata.enable": "maybe"}, "allowed is true or false"),
        ({"hoodie.parquet.max.file.size": "-1"}, "0 or more"),
        ({"hoodie.copyonwrite.record.size.estimate": "0"}, "1 or more"),
        ({"hoodie.datasource.write.operation": "merge"}, "insert, upsert"),
    ],
)
def test_bad_options_say_what_is_allowed(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OPTIONS.read(given)
    assert str(caught.value).startswith("HUDIMETA_CONFIG: ")
    assert text in str(caught.value)


def test_a_known_option_that_is_not_done_is_refused_only_when_it_changes_something() -> None:
    registry = Registry()
    registry.flag("hoodie.not.done", False, "Something.", refused="Leave it out.")
    registry.read({"hoodie.not.done": "false"})
    with pytest.raises(UnsupportedFeature, match="HUDIMETA_UNSUPPORTED"):
        registry.read({"hoodie.not.done": "true"})


def test_unknown_options_of_hudi_warn_once() -> None:
    with pytest.warns(HudiWarning, match="hoodie.some.new.thing"):
        OPTIONS.read({"hoodie.some.new.thing": "1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OPTIONS.read({"hoodie.some.new.thing": "1", "hoodie.upsert.shuffle.parallelism": "4", "spark.other": "x"})


def test_every_option_has_a_meaning_and_an_allowed_default() -> None:
    for option in OPTIONS:
        assert option.doc.endswith(".")
        assert option.allowed
        assert option.key == option.key.lower()


def test_an_option_cannot_be_declared_twice() -> None:
    registry = Registry()
    registry.flag("a.b", True, "Something.")
    with pytest.raises(ValueError, match="twice"):
        registry.text("a.b", None, "Something else.")
