"""Scripts in which a statement is ours: their flow runs here, each statement as `sql` runs it, expressions in Spark.

Spark's own interpreter runs a script as a whole inside its JVM, where no statement can be taken out of its hands; through
Connect there is none of it at hand at all. A local variable is one of Spark's session variables here as long as its block runs.
One that it hides, of an outer block or of the session, is put aside and comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, PySparkException

from hudimeta.errors import HudiError
from hudimeta.sql import Assign, Block, Choice, Declare, Execute, For, Handler, Jump, Loop, Run, Script, Step, parse, quoted
from pyspark_hudimeta.sql.executing import text_of
from pyspark_hudimeta.sql.explanation import reads_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["run_script"]

_NUMBER = count()
_NO_ERRORS = ("00", "01", "02", "XX")
"""Classes of SQLSTATEs that SQLEXCEPTION does not mean: success, warnings, no data, and Spark's internal errors."""


def run_script(session: SqlSession, script: Script) -> DataFrame:
    """Run a script.

    Args:
        session: Where it is run, with the script's parameters and DataFrames.
        script: The script.

    Returns:
        The rows of the last query; what the last statement returned where there was no query.

    Raises:
        HudiError, PySparkException: A statement failed for which there is no handler. Those before it have been done.
    """
    running = _Running(session)
    running.block(script.body)
    found = running.rows if running.rows is not None else running.last
    return found if found is not None else session.nothing()


class _Jumped(Exception):
    """LEAVE or ITERATE on its way to the block or loop that it names."""

    def __init__(self, jump: Jump) -> None:
        self.jump = jump

    def is_for(self, label: str) -> bool:
        return self.jump.label.lower() == label.lower()


class _Left(Exception):
    """An EXIT handler has run: its block ends. scope: The block's."""

    def __init__(self, scope: _Scope) -> None:
        self.scope = scope


@dataclass(eq=False)
class _Scope:
    """A block that runs.

    Attributes:
        handlers: Of the block.
        variables: Its variables as they are written, each with what holds the value of the one that it hides, and its type.
    """

    handlers: tuple[Handler, ...] = ()
    variables: list[tuple[str, tuple[str, str] | None]] = field(default_factory=list)


class _Running:
    """A script that runs."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._scopes: list[_Scope] = []
        self.rows: DataFrame | None = None
        self.last: DataFrame | None = None

    # Steps

    def block(self, block: Block) -> None:
        """Run a block."""
        scope = _Scope(block.handlers)
        try:
            self._within(scope, block.steps)
        except _Left as left:
            if left.scope is not scope:
                raise
        except _Jumped as jumped:
            if jumped.jump.again or not jumped.is_for(block.label):
                raise

    def _within(self, scope: _Scope, steps: Sequence[Step]) -> None:
        self._scopes.append(scope)
        try:
            self._steps(steps)
        finally:
            self._scopes.pop()
            self._forget(scope)

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Block():
                    self.block(step)
                case Run():
                    self._tried(partial(self._run, step.text))
                case Declare():
                    for name in step.names:
                        self._tried(partial(self._declare, self._scopes[-1], name, step.kind))
                case Assign():
                    self._tried(partial(self._spark, f"SET VARIABLE {step.text}"))
                case Choice():
                    number = self._tried(partial(self._value, step.number))
                    self._steps(step.branches[number] if number is not None else ())
                case Loop():
                    self._loop(step)
                case For():
                    self._for(step)
                case Jump():
                    raise _Jumped(step)

    def _run(self, text: str) -> None:
        asks = self._is_query(text)
        frame = self._session.own(text, self._session.parameters, **self._session.frames)
        if asks:
            # Rows are those of now, with the values that variables have now.
            self.rows = self._session.spark.createDataFrame(frame.collect(), frame.schema)
        else:
            self.last = frame

    def _is_query(self, text: str) -> bool:
        statement = parse(text)
        named = text_of(self._session, statement) if isinstance(statement, Execute) and not statement.into else text
        return named is not None and reads_rows(named)

    def _loop(self, loop: Loop) -> None:
        while not loop.before or self._holds(loop.before):
            if not self._round(loop.label, loop.steps):
                return
            if loop.after and self._holds(loop.after) is not False:
                return

    def _for(self, loop: For) -> None:
        frame = self._tried(partial(self._session.query, loop.query))
        rows = self._tried(frame.collect) if frame is not None else None
        if not rows or frame is None:
            return
        schema = frame.schema
        scope = _Scope()
        kinds = {quoted(column.name): column.dataType.simpleString() for column in schema}
        if loop.name:
            kinds[loop.name] = schema.simpleString()
        shown = [*map(quoted, schema.names), *(["struct(*)"] if loop.name else [])]
        for name, kind in kinds.items():
            self._declare(scope, name, kind)
        self._scopes.append(scope)
        view = f"_hudimeta_row_{next(_NUMBER)}"
        try:
            for row in rows:
                self._session.spark.createDataFrame([row], schema).createOrReplaceTempView(view)
                self._spark(f"SET VARIABLE ({', '.join(kinds)}) = (SELECT {', '.join(shown)} FROM {view})")
                if not self._round(loop.label, loop.steps):
                    break
        finally:
            self._session.spark.catalog.dropTempView(view)
            self._scopes.pop()
            self._forget(scope)

    def _round(self, label: str, steps: Sequence[Step]) -> bool:
        """Run a round of a loop; False when it was left."""
        try:
            self._steps(steps)
        except _Jumped as jumped:
            if not label or not jumped.is_for(label):
                raise
            return jumped.jump.again
        return True

    def _holds(self, condition: str) -> bool | None:
        """Whether a condition is true; None where it failed and a handler said to go on."""
        found = self._tried(partial(self._value, f"CASE WHEN ({condition}) THEN 1 ELSE 0 END"))
        return None if found is None else found == 1

    # Errors

    def _tried(self, action: Callable[[], Any]) -> Any:
        """What an action returns; None where it failed and a handler says to go on after it."""
        try:
            return action()
        except (HudiError, PySparkException) as error:
            for depth in range(len(self._scopes) - 1, -1, -1):
                handler = _handler(self._scopes[depth].handlers, error)
                if handler is not None:
                    return self._handled(handler, depth)
            raise

    def _handled(self, handler: Handler, depth: int) -> None:
        """Run a handler among the variables of its own block; errors of its own go to the blocks around."""
        scope, inner = self._scopes[depth], self._scopes[depth:]
        self._scopes[depth:] = [_Scope()]
        try:
            self._steps(handler.steps)
        finally:
            self._scopes[depth:] = inner
        if not handler.goes_on:
            raise _Left(scope)

    # Variables

    def _declare(self, scope: _Scope, name: str, kind: str) -> None:
        hidden = None
        try:
            self._spark(f"DECLARE VARIABLE {name} {kind}")
        except AnalysisException as error:
            if error.getCondition() != "VARIABLE_ALREADY_EXISTS":
                raise
            hidden = self._put_aside(name)
            self._spark(f"DECLARE OR REPLACE VARIABLE {name} {kind}")
        scope.variables.append((name, hidden))

    def _put_aside(self, name: str) -> tuple[str, str]:
        """Another name for the variable that a new one hides, and its type."""
        kind = self._session.plain(f"SELECT system.session.{name}").schema[0].dataType.simpleString()
        other = f"_hudimeta_hidden_{next(_NUMBER)}"
        self._move(name, other, kind)
        return other, kind

    def _forget(self, scope: _Scope) -> None:
        for name, hidden in reversed(scope.variables):
            if hidden is None:
                self._session.plain(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")
            else:
                self._move(hidden[0], name, hidden[1])
                self._session.plain(f"DROP TEMPORARY VARIABLE {hidden[0]}")

    def _move(self, name: str, other: str, kind: str) -> None:
        self._session.plain(f"DECLARE OR REPLACE VARIABLE {other} {kind}")
        self._session.plain(f"SET VARIABLE {other} = system.session.{name}")

    def _value(self, expression: str) -> Any:
        return self._session.query(f"SELECT {expression}").collect()[0][0]

    def _spark(self, text: str) -> None:
        self._session.plain(text, self._session.parameters, **self._session.frames)


def _handler(handlers: Sequence[Handler], error: HudiError | PySparkException) -> Handler | None:
    """The handler of a block that fits an error best: by its name, by its SQLSTATE, or by what kind of error it is."""
    state = "" if isinstance(error, HudiError) else error.getSqlState() or ""
    name = f"HUDIMETA_{error.code}" if isinstance(error, HudiError) else (error.getCondition() or "").upper()
    kind = "NOT FOUND" if state.startswith("02") else "SQLEXCEPTION"
    fitting = [
        {name, name.partition(".")[0]},
        {f"'{state}'"},
        {kind} if state[:2] not in _NO_ERRORS or kind == "NOT FOUND" else set(),
    ]
    for wanted in fitting:
        for handler in handlers:
            if not wanted.isdisjoint(handler.conditions):
                return handler
    return None
