"""Small changes of a program that some test should notice: one comparison, condition, constant or statement at a time."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EQUAL", "Equal", "Mutation", "equal_mutants", "mutations"]

EQUAL = Path(__file__).with_name("equal_mutants.json")
"""Changes that nobody can tell, with the reason: survivors that were looked at."""

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
UNTOUCHED = (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert, ast.AnnAssign)
"""Statements whose change is no change of what the program does right, or that cannot run otherwise."""


@dataclass(frozen=True)
class Mutation:
    """A change of one place.

    Attributes:
        line: Where, from 1.
        before, after: The expression or statement.
        source: Of the whole module with the change in it.
    """

    line: int
    before: str
    after: str
    source: str

    @property
    def becomes(self) -> str:
        """The line as it is changed."""
        return self.source.splitlines()[self.line - 1].strip()


@dataclass(frozen=True)
class Equal:
    """A change that makes no difference.

    Attributes:
        path: Of the module, below the project.
        becomes: What the changed line holds, and no other line that may be changed to it makes a difference either.
        why: Nobody can tell.
        was: What was changed there, where other lines become the same; a piece of it is enough.
    """

    path: str
    becomes: str
    why: str
    was: str = ""

    def is_about(self, path: str, mutation: Mutation) -> bool:
        """Whether a mutation of a module is such a change."""
        return path == self.path and self.becomes in mutation.becomes and self.was in mutation.before


def equal_mutants() -> list[Equal]:
    """All that are known."""
    return [Equal(**entry) for entry in json.loads(EQUAL.read_text(encoding="utf-8"))]


def mutations(source: str) -> Iterator[Mutation]:
    """All mutations of a module's source, in the order of their places.

    Args:
        source: Python.
    """
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data = source.encode()
    for node, instead in _changes(ast.parse(source)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        after = ast.unparse(instead)
        if isinstance(node, ast.expr):
            after = f"({after})"
        changed = (data[:begin] + after.encode() + data[end:]).decode()
        yield Mutation(node.lineno, ast.unparse(node), ast.unparse(instead), changed)


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr | ast.stmt]]:
    """Nodes and what may stand there instead; docstrings, annotations, decorators and texts stay."""
    for node in _touched(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            for other in COMPARED.get(type(node.ops[0]), ()):
                yield node, ast.Compare(node.left, [other()], node.comparators)
        elif isinstance(node, ast.BoolOp):
            other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, ast.BoolOp(other_op, node.values)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, node.operand
        elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _is_text(node):
            yield node, ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, ast.Constant(not node.value)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield node, ast.Constant(node.value + 1)
        elif isinstance(node, ast.IfExp):
            yield node, ast.IfExp(node.test, node.orelse, node.body)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, ast.Pass()
        elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
            yield node, ast.Return(ast.Constant(None))
        elif isinstance(node, ast.Continue):
            yield node, ast.Break()


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides)


def _touched(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases", "keywords") and not isinstance(
            node, ast.Call
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, (*UNTOUCHED, ast.JoinedStr)) or _is_guard(child):
                continue
            yield child
            yield from _touched(child)


def _is_guard(node: ast.AST) -> bool:
    """`if TYPE_CHECKING:` and `__all__`."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
