"""Options: types, aliases, near misses, and what is refused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import OPTIONS, HudiWarning, OptionRegistry
from hudimeta.config import option as declared
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
        ({"failOnDataLoss": "maybe"}, "option 'failondataloss' has the value 'maybe', allowed is true or false"),
        ({"hoodie.parquet.max.file.size": "-1"}, "0 or more"),
        ({"hoodie.parquet.max.file.size": "120_000"}, "0 or more"),
        ({"hoodie.parquet.max.file.size": str(1 << 63)}, "0 or more"),
        ({"hoodie.parquet.max.file.size": "9" * 5000}, "0 or more"),
        ({"hoodie.partition.ttl.strategy.days.retain": "1_0"}, "a whole number"),
        ({"hoodie.index.bloom.fpp": "0.0_1"}, "between 0 and 1"),
        ({"hoodie.metadata.index.column.stats.file.group.count": "0"}, "from 1 to 10,000"),
        ({"hoodie.metadata.record.index.min.filegroup.count": "2147483647"}, "from 0 to 10,000"),
        ({"hoodie.bucket.index.num.buckets": "100000001"}, "from 1 to 100,000,000"),
        ({"hoodie.copyonwrite.record.size.estimate": "0"}, "1 or more"),
        ({"hoodie.datasource.write.operation": "merge"}, "insert, upsert"),
    ],
)
def test_bad_options_say_what_is_allowed(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OPTIONS.read(given)
    assert str(caught.value).startswith("HUDIMETA_CONFIG: ")
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("key", "fine", "refused"),
    [
        ("hoodie.table.base.file.format", "parquet", "ORC"),
        ("hoodie.datasource.write.record.merger.impls", "org.apache.hudi.DefaultSparkRecordMerger", "com.shop.Merger"),
        (
            "hoodie.write.record.merge.custom.implementation.classes",
            "org.apache.hudi.common.model.HoodieAvroRecordMerger, org.apache.hudi.DefaultSparkRecordMerger",
            "org.apache.hudi.DefaultSparkRecordMerger,com.shop.Merger",
        ),
        ("hoodie.layout.optimize.enable", "false", "true"),
        ("hoodie.datasource.write.schema.allow.auto.evolution.column.drop", "false", "true"),
        ("hoodie.datasource.hive_sync.enable", "false", "true"),
        ("hoodie.write.commit.callback.on", "false", "true"),
        ("hoodie.metrics.executor.enable", "false", "true"),
        ("hoodie.precommit.validators", "", "com.shop.Check"),
        ("hoodie.datasource.merge.type", "payload_combine", "skip_merge"),
        ("hoodie.precommit.validators.equality.sql.queries", "", "select 1"),
        ("hoodie.record.merge.property.hoodie.payload.delete.field", "", "op"),
        ("overwriteSchema", "false", "true"),
        ("txnVersion", "", "7"),
        ("skipChangeCommits", "false", "true"),
        ("tag", "", "release"),
    ],
)
def test_what_is_not_done_is_refused_unless_it_asks_for_what_is_done(key: str, fine: str, refused: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OPTIONS.read({key: fine})
    with pytest.raises(UnsupportedFeature, match=f"HUDIMETA_UNSUPPORTED: option {re.escape(key)}=.* is not supported"):
        OPTIONS.read({key: refused})


def test_every_hint_of_what_is_not_done_is_a_sentence() -> None:
    assert len(OPTIONS.not_done) > 100
    for option in OPTIONS.not_done:
        assert option.hint.endswith((".", "…"))
        assert all(value == value.lower() for value in option.fits)


@pytest.mark.parametrize(
    ("key", "fine", "told", "instead"),
    [
        ("hoodie.metadata.index.secondary.enable", "TRUE", "false", "keeps all indexes"),
        ("hoodie.metadata.auto.delete.partitions", "false", "true", "keeps all indexes"),
        ("hoodie.fail.writes.on.inline.table.service.exception", "false", "true", "what fails after that is a warning"),
        ("hoodie.post.commit.failures.ignored", "true", "false", "what fails after that is a warning"),
        ("hoodie.write.record.positions", "false", "true", "by the keys alone"),
        (
            "hoodie.record.size.estimator.class",
            "org.apache.hudi.estimator.AverageRecordSizeEstimator",
            "com.Mine",
            "bytes of a row",
        ),
        ("hoodie.metadata.compact.trigger.strategy", "NUM_COMMITS", "TIME_ELAPSED", "max.delta.commits"),
        ("Hoodie.Hfile.compression.algorithm", "GZ", "ZSTD", "gzip"),
    ],
)
def test_what_is_done_otherwise_is_told_once(
    monkeypatch: pytest.MonkeyPatch, key: str, fine: str, told: str, instead: str
) -> None:
    monkeypatch.setattr(declared, "_warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OPTIONS.read({key: fine})
        OPTIONS.read({key: ""})
    with pytest.warns(HudiWarning, match=f"ignores the option {re.escape(f'{key}={told}')}: .*{re.escape(instead)}"):
        OPTIONS.read({key: told})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OPTIONS.read({key: told})


def test_what_is_ignored_says_what_is_done_instead() -> None:
    for one in OPTIONS.ignored:
        assert one.fits, "a value that asks for what is done"
        assert one.instead[0].islower()
        assert not one.instead.endswith(".")
        assert all(value == value.lower() for value in one.fits)


def test_a_bootstrap_translates_no_paths() -> None:
    package = "org.apache.hudi.client.bootstrap.translator"
    OPTIONS.read({"hoodie.bootstrap.partitionpath.translator.class": f"{package}.IdentityBootstrapPartitionPathTranslator"})
    with pytest.raises(UnsupportedFeature, match="Partitions have the paths of the source"):
        OPTIONS.read({"hoodie.bootstrap.partitionpath.translator.class": f"{package}.DecodedBootstrapPartitionPathTranslator"})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("timestampAsOf", "as.of.instant"),
        ("dynamicPartitionOverwrite", "hoodie.datasource.overwrite.mode"),
        ("asOfInstant", "as.of.instant"),
        ("as_of_instant", "as.of.instant"),
        ("filter", "hudimeta.filter"),
        ("columns", "hudimeta.columns"),
        ("primarykeys", "hoodie.datasource.write.recordkey.field"),
        ("primary_key", "hoodie.datasource.write.recordkey.field"),
        ("recordkey", "hoodie.datasource.write.recordkey.field"),
        ("precombine", "hoodie.datasource.write.precombine.field"),
        ("preCombineFeild", "hoodie.datasource.write.precombine.field"),
        ("replaceWhere", "hoodie.datasource.overwrite.mode"),
        ("startOffset", "hoodie.datasource.streaming.startoffset"),
        ("startingOffsets", "hoodie.datasource.streaming.startoffset"),
        ("readChangeFeed", "hoodie.datasource.query.incremental.format"),
        ("hudi.table.name", "hoodie.table.name"),
        ("datasource.write.operation", "hoodie.datasource.write.operation"),
        ("spark.hoodie.table.name", "hoodie.table.name"),
        ("hoodie_table_name", "hoodie.table.name"),
        ("hoodie.table.name ", "hoodie.table.name"),
        ("hoodie.clustering.inlin", "hoodie.clustering.inline"),
        ("hoodie.metrics.graphite.prot", "hoodie.metrics.graphite.port"),
    ],
)
def test_a_slip_is_refused_with_the_right_name(given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"Did you mean {re.escape(meant)}\\?"):
        OPTIONS.read({given: "x"})


@pytest.mark.parametrize("given", ["startingVersion", "startingTimestamp"])
def test_where_a_stream_begins_is_told_apart_from_where_a_range_begins(given: str) -> None:
    told = "Did you mean hoodie.datasource.read.begin.instanttime? Of a stream it is hoodie.datasource.streaming.startoffset."
    with pytest.raises(ConfigError, match=re.escape(told)):
        OPTIONS.read({given: "1"})


def test_options_of_spark_and_of_other_formats_are_left_alone() -> None:
    names = """
        header inferSchema sep delimiter quote escape multiLine mode dateFormat timestampFormat timestampNTZFormat nullValue
        encoding charset comment samplingRatio mergeSchema recursiveFileLookup basePath int96RebaseMode datetimeRebaseMode
        primitivesAsString allowComments lineSep wholetext ignoreLeadingWhiteSpace maxCharsPerColumn
        columnNameOfCorruptRecord dropFieldIfAllNull locale emptyValue enforceSchema rowTag avroSchema url dbtable user
        numPartitions fetchsize batchsize truncate driver partitionOverwriteMode latestFirst checkpointLocation
        queryName outputMode provider owner location external serialization.format option.header option.hoodie.table.name
        option.path transient_lastDdlTime is_managed_location table_type_of_somebody collation userMetadata
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OPTIONS.read(dict.fromkeys(names.split(), "x"))


def test_two_spellings_of_a_key_with_two_values_are_refused() -> None:
    assert OPTIONS.read({"Hoodie.Table.Name": "t", "hoodie.table.name": "t"}).get(keys.TABLE_NAME) == "t"
    with pytest.raises(ConfigError, match="Names of options have no case"):
        OPTIONS.read({"Hoodie.Table.Name": "t", "hoodie.table.name": "u"})


def test_two_names_of_an_option_may_say_the_same_in_two_ways() -> None:
    given = {"hoodie.table.type": "merge_on_read", "hoodie.datasource.write.storage.type": "MERGE_ON_READ "}
    assert OPTIONS.read(given).get(keys.TABLE_TYPE) == "MERGE_ON_READ"


def test_unknown_options_of_hudi_warn_once() -> None:
    with pytest.warns(HudiWarning, match="hoodie.some.new.thing"):
        OPTIONS.read({"hoodie.some.new.thing": "1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OPTIONS.read({"hoodie.some.new.thing": "1", "hoodie.upsert.shuffle.parallelism": "4", "spark.other": "x"})


def test_what_needs_nothing_here_is_known_in_any_case() -> None:
    OPTIONS.read({"hoodie.fileIndex.dataSkippingFailureMode": "strict", "HOODIE.EMBED.TIMELINE.SERVER": "false"})


def test_every_option_has_a_meaning_and_an_allowed_default() -> None:
    for option in OPTIONS:
        assert option.doc.endswith(".")
        assert option.allowed
        assert option.key == option.key.lower()


def test_an_option_cannot_be_declared_twice() -> None:
    registry = OptionRegistry()
    registry.flag("a.b", True, "Something.")
    with pytest.raises(ValueError, match="twice"):
        registry.text("a.b", None, "Something else.")


@pytest.mark.parametrize("given", ["a=b", ["a"], [("hoodie.table.name", "t")], {1: "x"}, 7])
def test_what_is_no_dictionary_of_options_is_refused(given: object, tmp_path: Path) -> None:
    acts: tuple[Callable[[], object], ...] = (
        lambda: hudimeta.Table(tmp_path / "t", given),  # type: ignore[arg-type]
        lambda: hudimeta.Table.create(tmp_path / "t", {"id": pa.int64()}, key="id", options=given),  # type: ignore[arg-type]
    )
    for act in acts:
        with pytest.raises(ConfigError, match=r"argument 'options' .* a dictionary"):
            act()
    assert not (tmp_path / "t").exists()


def test_what_goes_before_options_takes_the_place_of_their_other_names_too() -> None:
    given = OPTIONS.read({"hoodie.datasource.view.type": "incremental", "hoodie.table.name": "t"})
    assert given.having({"hoodie.datasource.query.type": "CDC"}).texts == {
        "hoodie.datasource.query.type": "CDC",
        "hoodie.table.name": "t",
    }
    assert given.having({"Hoodie.Datasource.View.Type": "snapshot"}).texts["hoodie.datasource.view.type"] == "snapshot"
