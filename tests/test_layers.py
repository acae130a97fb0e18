"""The order of the layers: a package imports only packages of its own line and of the lines above."""

from __future__ import annotations

import ast
import graphlib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("layers")  # the product is parsed once, in one process of a run

ROOT = Path(__file__).resolve().parents[1]

LAYERS: tuple[tuple[str, ...], ...] = (
    ("cached", "forking", "redaction", "reports", "metering", "errors", "types", "config"),
    ("storage", "engine"),
    ("formats",),
    ("timeline",),
    ("table", "schema", "keys"),
    ("predicate",),
    ("metadata",),
    ("plan_cache",),
    ("snapshot",),
    ("slices",),
    ("indexes",),
    ("read",),
    ("commit",),
    ("write",),
    ("services",),
    ("procedures",),
    ("api", "sql", "cli", "observability", "testing"),
)
FACE = len(LAYERS) - 1
SPARK_SIDE = len(LAYERS)

EMPTY_NAMES = {"base", "common", "misc"}
EMPTY_WORDS = {"util", "utils", "helper", "helpers", "manager", "managers"}
LONG, TOO_LONG = 400, 500
"""Lines: a module longer than the first is reported, longer than the second is refused."""


MOST_ROOMS = 45
"""Modules in one folder."""


@dataclass(frozen=True)
class Import:
    """One import of one of the project's modules (or of `outside`, a foreign top-level name).

    Attributes:
        source: The module that imports.
        target: The module that is imported.
        name: What it takes of that module; empty for the module itself.
        line: Of the statement.
        at_run_time: False for what only type checkers read.
    """

    source: str
    target: str
    name: str
    line: int
    at_run_time: bool


@cache
def modules() -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    found = {}
    for top in (ROOT / "hudimeta", ROOT / "datasource" / "pyspark_hudimeta"):
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(top.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Every import statement of the product, those inside functions included."""
    return tuple(found for name in modules() for found in _imports_of(name))


def _imports_of(name: str) -> Iterator[Import]:
    path = modules()[name]
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for node, at_run_time in _statements(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield _import(name, alias.name, node, at_run_time)
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(name, path, node)
            for alias in node.names:
                yield _import(name, f"{origin}.{alias.name}", node, at_run_time)


def _statements(block: Iterable[ast.AST], at_run_time: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Every statement of a block, and whether it is more than what type checkers read."""
    for node in block:
        yield node, at_run_time
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            for_types_only = part == "body" and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            yield from _statements(getattr(node, part, ()), at_run_time and not for_types_only)


def _import(source: str, dotted: str, node: ast.stmt, at_run_time: bool) -> Import:
    target = _closest(dotted)
    return Import(source, target, dotted[len(target) + 1 :], node.lineno, at_run_time)


def _absolute(name: str, path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    kept = package[: len(package) - (node.level - 1)]
    return ".".join([*kept, node.module] if node.module else kept)


def _closest(dotted: str) -> str:
    """The module that an imported name lives in; for foreign names the top-level package."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        if ".".join(parts[:end]) in modules():
            return ".".join(parts[:end])
    return parts[0]


def layer(module: str) -> int | None:
    """The line of the table above that a module stands in; None for a foreign one."""
    parts = module.split(".")
    if parts[0] == "pyspark_hudimeta":
        return SPARK_SIDE
    if parts[0] != "hudimeta":
        return None
    if len(parts) == 1 or parts[1] == "__main__":
        return FACE
    for number, packages in enumerate(LAYERS):
        if parts[1] in packages:
            return number
    raise AssertionError(f"{module} belongs to no layer: give its package a place in LAYERS")


def where(found: Import) -> str:
    """`file:line` for the reader of a failure."""
    return f"{modules()[found.source].relative_to(ROOT)}:{found.line}"


def test_every_package_has_a_layer() -> None:
    assert all(layer(name) is not None for name in modules())


def test_imports_go_upwards_only() -> None:
    wrong = []
    for found in imports():
        own, other = layer(found.source), layer(found.target)
        if own is not None and other is not None and other > own:
            wrong.append(f"{where(found)} imports {found.target}")
    assert not wrong, "\n".join(wrong)


def test_engine_does_not_know_spark() -> None:
    wrong = [
        f"{where(found)} imports {found.target}"
        for found in imports()
        if found.source.split(".")[0] == "hudimeta" and found.target.split(".")[0] in ("pyspark", "py4j", "pyspark_hudimeta")
    ]
    assert not wrong, "\n".join(wrong)


def test_no_import_cycles() -> None:
    """Modules that need each other at run time are one module, whether or not the import hides in a function."""
    edges: dict[str, set[str]] = {name: set() for name in modules()}
    for found in imports():
        inside_own_package = found.source.startswith(found.target + ".") or found.target.startswith(found.source + ".")
        if found.at_run_time and found.target in edges and found.target != found.source and not inside_own_package:
            edges[found.source].add(found.target)
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        pytest.fail("modules import each other: " + " <- ".join(error.args[1]))


def test_no_cycles_between_packages() -> None:
    """Types count as well: who only names the other's types still cannot be read, or moved, without it."""
    edges: dict[str, set[str]] = {}
    for found in imports():
        own, other = (".".join(name.split(".")[:2]) for name in (found.source, found.target))
        if own != other and layer(found.target) is not None and "." in own and "." in other:
            edges.setdefault(own, set()).add(other)
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        pytest.fail("packages import each other: " + " <- ".join(error.args[1]))


def faces(package: str) -> set[str]:
    """What a package's `__init__` names in `__all__`: modules and names that the other packages may import."""
    for statement in ast.parse(modules()[package].read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return set(ast.literal_eval(statement.value))
    return set()


def packages() -> list[str]:
    """Every package but the two that hold all others; those are what users import."""
    return [name for name, path in modules().items() if path.name == "__init__.py" and "." in name]


def entered(found: Import, package: str) -> str:
    """By which face an import comes into a package; empty when it stays inside, or does not come in."""
    if f"{found.source}.".startswith(f"{package}."):
        return ""
    way = f"{found.target}.{found.name}" if found.name else found.target
    return way[len(package) + 1 :].split(".")[0] if way.startswith(f"{package}.") else ""


@pytest.mark.parametrize("package", packages())
def test_others_import_faces_only(package: str) -> None:
    named, home = faces(package), modules()[package].relative_to(ROOT)
    wrong = [
        f"{where(found)} comes in by {face}" for found in imports() if (face := entered(found, package)) and face not in named
    ]
    hint = f"import one of the faces in {home}, move the name to where it is used, or add its module to the faces there"
    assert not wrong, "\n".join([*wrong, hint])


@pytest.mark.parametrize("package", packages())
def test_faces_are_there(package: str) -> None:
    """A face is a module of the package, or a name that its `__init__` makes."""
    made = {
        name.asname or name.name
        for node in ast.walk(ast.parse(modules()[package].read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    absent = {face for face in faces(package) - made if f"{package}.{face}" not in modules()}
    assert not absent, f"{modules()[package].relative_to(ROOT)} names what is not there: {sorted(absent)}"


@pytest.mark.parametrize("package", sorted({name for line in LAYERS[2:14] for name in line}))
def test_only_storage_opens_files(package: str) -> None:
    """All bytes pass through the storage seam, or counting, retries and fault injection would miss some."""
    openers = {"open", "io.open", "os.open", "os.listdir", "os.walk", "os.scandir"}
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {ast.unparse(node.func)}"
        for name, path in modules().items()
        if name.split(".")[1:2] == [package]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in openers
    ]
    assert not wrong, "\n".join(wrong)


def test_names_say_something() -> None:
    own = {name: name.split(".")[-1] for name in modules()}
    wrong = [name for name, last in own.items() if last in EMPTY_NAMES or EMPTY_WORDS & set(last.split("_"))]
    assert not wrong, f"name these after what they hold: {wrong}"


def test_packages_stay_easy_to_survey() -> None:
    rooms = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules().values() if path.name != "__init__.py")
    assert not {folder: count for folder, count in rooms.items() if count > MOST_ROOMS}, "cut these packages in two"


@pytest.mark.filterwarnings("default:.* time to cut it in two")  # advice, up to a limit
def test_modules_stay_readable() -> None:
    length = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}
    for name in sorted(n for n, lines in length.items() if LONG < lines <= TOO_LONG):
        warnings.warn(f"{name} has {length[name]} lines: time to cut it in two", stacklevel=1)
    assert not {name: lines for name, lines in length.items() if lines > TOO_LONG}
