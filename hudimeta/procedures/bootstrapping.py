"""Procedures of bootstrapped tables: how one is made, and where its rows are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hudimeta.errors import ConfigError
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows, RunPlace
from hudimeta.table.bootstrap_index import BootstrapIndex

__all__ = ["PROCEDURES", "bootstrap_arguments"]

_TABLE = "@table string, @path string"
_NAMES = ("partition", "file_id", "source_base_path", "source_partition", "source_file")
_ONLY = {
    "base_file_format": ("PARQUET",),
    "bootstrap_index_class": ("HFileBootstrapIndex",),
    "full_bootstrap_input_provider": ("SparkParquetBootstrapDataProvider",),
    "schema_provider_class": ("",),
    "enable_hive_sync": (False,),
    "props_file_path": ("",),
    "bootstrap_overwrite": (False,),
}
"""Arguments that can have one value, of classes the last part of their name."""
_PAYLOAD, _KEY_GENERATOR = "OverwriteWithLatestAvroPayload", "SimpleKeyGenerator"


def _source(call: ProcedureCall) -> str:
    base = call.properties.bootstrap_base_path
    if base is None:
        raise ConfigError("table", call.storage.root, "a bootstrapped table", "CALL run_bootstrap(…) makes one.")
    return base


def _mapping(call: ProcedureCall) -> Iterator[tuple[str, str, str, str, str]]:
    base = _source(call)
    for partition, file_id, source_partition, uri in BootstrapIndex(call.storage).mapping():
        yield partition, file_id, base, source_partition, uri


def _show_mapping(call: ProcedureCall) -> Rows:
    partition, ids = call["partition_path"], [one.strip() for one in call["file_ids"].split(",") if one.strip()]
    if ids and not partition:
        raise ConfigError("partition_path", partition, "a partition, where file_ids are given")
    if call["sort_by"] not in _NAMES:
        raise ConfigError("sort_by", call["sort_by"], ", ".join(_NAMES))
    rows = [row for row in _mapping(call) if partition in ("", row[0]) and (not ids or row[1] in ids)]
    place = _NAMES.index(call["sort_by"])
    return call.first(sorted(rows, key=lambda row: row[place], reverse=call["desc"]))


def _show_partitions(call: ProcedureCall) -> Rows:
    return [(partition,) for partition in sorted({row[0] for row in _mapping(call)})]


def bootstrap_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `hudimeta.bootstrap` that those of `run_bootstrap` mean, without the engine.

    Args:
        arguments: As `bind` made them.

    Raises:
        ConfigError: A value that means nothing here.
    """
    for name, allowed in _ONLY.items():
        value = arguments[name]
        if (value.rpartition(".")[2] if isinstance(value, str) else value) not in allowed:
            words = " or ".join(str(one) or "nothing" for one in allowed)
            raise ConfigError(name, value, words, "hudimeta.bootstrap(source, path, …) of Python tells what there is.")
    pairs = _listed(arguments["options"] or "")
    odd = [pair for pair in pairs if "=" not in pair]
    if odd:
        raise ConfigError("options", odd[0], "key=value, with commas between them")
    options = dict(pair.split("=", 1) for pair in pairs)
    options["hoodie.bootstrap.mode.selector"] = arguments["selector_class"]
    if arguments["payload_class"].rpartition(".")[2] != _PAYLOAD:
        options["hoodie.datasource.write.payload.class"] = arguments["payload_class"]
    if arguments["key_generator_class"].rpartition(".")[2] != _KEY_GENERATOR:
        options["hoodie.datasource.write.keygenerator.class"] = arguments["key_generator_class"]
    return {
        "source": arguments["bootstrap_path"],
        "path": arguments["base_path"],
        "key": _listed(arguments["rowKey_field"]),
        "partition_by": _listed(arguments["partition_path_field"]),
        "type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}.get(arguments["table_type"].lower(), arguments["table_type"]),
        "name": arguments["table"].rpartition(".")[2],
        "options": options,
    }


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


PROCEDURES = (
    Procedure(
        "run_bootstrap",
        "@table string!, table_type string!, bootstrap_path string!, base_path string!, rowKey_field string!, "
        "base_file_format string = 'PARQUET', partition_path_field string = '', "
        "bootstrap_index_class string = 'org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex', "
        "selector_class string = 'org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector', "
        "key_generator_class string = 'org.apache.hudi.keygen.SimpleKeyGenerator', "
        "full_bootstrap_input_provider string = 'org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider', "
        "schema_provider_class string = '', "
        "payload_class string = 'org.apache.hudi.common.model.OverwriteWithLatestAvroPayload', parallelism int = 1500, "
        "enable_hive_sync boolean = false, props_file_path string = '', bootstrap_overwrite boolean = false, options string",
        "status int",
        "Make a table over Parquet files that stay where they are.",
        place=RunPlace.SPARK,
        why="hudimeta.bootstrap(source, path, …) does it without.",
        acts=True,
        note="`parallelism` says nothing here; CREATE TABLE … USING hudimeta LOCATION gives the table a name in the catalog.",
    ),
    Procedure(
        "show_bootstrap_mapping",
        f"{_TABLE}, partition_path string = '', file_ids string = '', limit int = 10, sort_by string = 'partition', "
        "desc boolean = false, filter string = ''",
        "partition string, file_id string, source_base_path string, source_partition string, source_file string",
        "From which source each file group of a bootstrapped table comes.",
        _show_mapping,
    ),
    Procedure(
        "show_bootstrap_partitions",
        f"{_TABLE}, filter string = ''",
        "indexed_partitions string",
        "The partitions of a bootstrapped table.",
        _show_partitions,
    ),
)
