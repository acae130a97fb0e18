"""SQL statements about tables: text in, a frozen value out. Nothing here runs anything, and nothing knows Spark.

Queries, conditions and expressions inside a statement stay the text that the user wrote: whoever runs the statement hands
them to its SQL engine. What cannot be read as one of these statements is None, never an error, because it may well be a
statement that only the engine knows.
"""

from __future__ import annotations

from hudimeta.sql.asking import Ask, TableQuestion
from hudimeta.sql.calling import CallProcedure
from hudimeta.sql.columns import ColumnPlace, DeclaredColumn
from hudimeta.sql.constants import is_constant
from hudimeta.sql.cursor import BETWEEN_WORDS, with_backticks
from hudimeta.sql.defaults import has_query, is_default, with_defaults, without_defaults
from hudimeta.sql.forms import Form, form_of
from hudimeta.sql.hudi_types import in_types_of_spark
from hudimeta.sql.insertion import InsertEach
from hudimeta.sql.parameters import named_parameters, with_literals
from hudimeta.sql.parser import Statement, may_write, name_of, parse, source_of, target_of, with_format
from hudimeta.sql.qualifiers import without_database
from hudimeta.sql.relations import Reference, function_tables, identifier_calls, moment, references
from hudimeta.sql.script import (
    Assign,
    Block,
    Choice,
    Declare,
    For,
    Handler,
    Jump,
    Loop,
    Run,
    Script,
    Step,
    split,
    texts_of,
)
from hudimeta.sql.statement import (
    AlterEntry,
    AlterTable,
    Analyze,
    Assignments,
    CreateIndex,
    CreateLike,
    CreateTable,
    Delete,
    DropIndex,
    DropTable,
    Execute,
    Explain,
    Insert,
    MergeAction,
    MergeClause,
    MergeRows,
    MergeStatement,
    Optimize,
    Partitions,
    PartitionValues,
    PartitionVerb,
    RefreshIndex,
    Restore,
    SetOption,
    SetTableProperties,
    TableName,
    Update,
    Vacuum,
    quoted,
)

__all__ = [
    "BETWEEN_WORDS",
    "Assign",
    "Block",
    "Choice",
    "Declare",
    "For",
    "Handler",
    "Jump",
    "Loop",
    "Run",
    "Step",
    "texts_of",
    "Analyze",
    "Optimize",
    "PartitionVerb",
    "Partitions",
    "Restore",
    "SetTableProperties",
    "Vacuum",
    "AlterEntry",
    "AlterTable",
    "Ask",
    "Assignments",
    "CallProcedure",
    "ColumnPlace",
    "CreateIndex",
    "CreateLike",
    "CreateTable",
    "DeclaredColumn",
    "Delete",
    "DropIndex",
    "DropTable",
    "Execute",
    "Explain",
    "Form",
    "Insert",
    "InsertEach",
    "MergeStatement",
    "MergeAction",
    "MergeClause",
    "MergeRows",
    "PartitionValues",
    "TableQuestion",
    "Reference",
    "RefreshIndex",
    "Script",
    "SetOption",
    "Statement",
    "TableName",
    "Update",
    "form_of",
    "function_tables",
    "identifier_calls",
    "in_types_of_spark",
    "has_query",
    "is_constant",
    "is_default",
    "may_write",
    "moment",
    "name_of",
    "named_parameters",
    "parse",
    "quoted",
    "references",
    "source_of",
    "split",
    "target_of",
    "with_backticks",
    "with_defaults",
    "with_format",
    "with_literals",
    "without_database",
    "without_defaults",
]
