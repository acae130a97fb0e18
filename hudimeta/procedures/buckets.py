"""The procedure that gives partitions other numbers of buckets (RFC-89)."""

from __future__ import annotations

import json

from hudimeta.errors import ConfigError
from hudimeta.indexes.bucket.partition_rules import PartitionRules, committed_rules
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows, RunPlace
from hudimeta.services import rollback
from hudimeta.services.bucket_rescaling import rescale_buckets

__all__ = ["PROCEDURES"]

_BUCKETS, _COUNT, _TYPE = "BUCKET", "hoodie.bucket.index.num.buckets", "hoodie.index.type"


def _manage(call: ProcedureCall) -> Rows:
    if call["rule"].lower() != "regex":
        raise ConfigError("rule", call["rule"], "regex", "Apache Hudi has no other kind of rule either.")
    known = committed_rules(call.storage, call.timeline)
    if call["show_config"]:
        return [("SUCCESS", "SHOW_CONFIG", _shown(rules)) for rules in known]
    asked = [name for name in ("rollback", "overwrite", "add") if call[name]]
    if len(asked) != 1:
        allowed = "one of overwrite, add, rollback and show_config"
        raise ConfigError("partition_bucket_index_manager", ", ".join(asked) or None, allowed)
    if call["rollback"]:
        return _rolled_back(call, known)
    rules = call[asked[0]]
    if call["add"] and known:
        rules = f"{rules};{known[-1].expressions}"
    return _rescaled(call, asked[0], rules, known[-1] if known else None)


def _rescaled(call: ProcedureCall, asked: str, rules: str, now: PartitionRules | None) -> Rows:
    options, count = {_TYPE: _BUCKETS} | call.listed_options(), call["bucket_number"]
    if count > 0 and now is None:
        options[_COUNT] = str(count)
    elif count > 0 and now is not None and count != now.default:
        rules = f"{rules};.*,{count}"  # what the table was made with stays its number where no rule fits
    report = rescale_buckets(call.session(options), rules, dry_run=call["dry_run"])
    return [("SUCCESS", asked.upper(), str(report))]


def _rolled_back(call: ProcedureCall, known: list[PartitionRules]) -> Rows:
    instant = call["rollback"]
    if instant not in {rules.instant for rules in known}:
        told = ", ".join(rules.instant for rules in known) or "none here"
        raise ConfigError("rollback", instant, f"an instant that brought rules: {told}", "show_config => true tells the rules.")
    return [("SUCCESS", "ROLLBACK", str(rollback.roll_back(call.session(), instant, dry_run=call["dry_run"])))]


def _shown(rules: PartitionRules) -> str:
    told = {"instant": rules.instant, "expressions": rules.expressions, "defaultBucketNumber": rules.default}
    return json.dumps(told, ensure_ascii=False)


PROCEDURES = (
    Procedure(
        "partition_bucket_index_manager",
        "@table string!, overwrite string, bucket_number int = -1, add string, dry_run boolean = true, rollback string, "
        "show_config boolean = false, rule string = 'regex', options string",
        "result string, operation string, details string",
        "Give partitions different numbers of buckets by new rules (`overwrite`), or by more of them (`add`); only looks "
        "unless `dry_run => false`.",
        _manage,
        acts=True,
        place=RunPlace.ENGINE,
    ),
)
