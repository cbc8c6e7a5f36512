"""The fluent builder: from a source, row by row, to windows and to the stages that remember beyond them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.api.pipeline import Branch, Output
from penstock.api.windowed import Windowed
from penstock.diagnostics.unknown_names import explained, not_rows, unknown_name
from penstock.errors import PlanError, did_you_mean
from penstock.expressions.builder import Col, Name, Node, expression
from penstock.expressions.nodes import Case, Compare, Literal
from penstock.model.aggregates import Aggregate
from penstock.model.triggers import AtWatermark, Trigger
from penstock.model.watermarks import TimeBase, Watermark, ascending, by_hand
from penstock.model.windows import WindowRule
from penstock.plan.explain import explain_flow
from penstock.plan.graph import flow_of
from penstock.plan.operators.deduplicate import dedup_rule
from penstock.plan.operators.enrich import CACHE_ROWS, Asked, enrich_rule
from penstock.plan.operators.join import How, Limit, join_rule
from penstock.plan.operators.join_schema import on_columns
from penstock.plan.operators.match import LIMIT, match as match_rule
from penstock.plan.operators.passthrough import Pass
from penstock.plan.operators.pattern import Pattern, Skip
from penstock.plan.operators.process import KeyedFunction, check_rules, process_rule
from penstock.plan.operators.table_join import table_rule
from penstock.plan.operators.temporal_join import TemporalHow, temporal_rule
from penstock.plan.operators.top_n import Best, top_rule
from penstock.plan.row_steps import BatchFunction, Map, MapBatches, Project, RowFunction, RowPredicate, RowStep, Where
from penstock.plan.stages import MAIN, Dealt, Derived, Entry, Input, Operator, RowStage
from penstock.plan.tables import REMOVED, Table
from penstock.plan.validate import check_time, check_union, checked, inherited_lateness
from penstock.types.durations import Duration, not_negative
from penstock.types.schema import Schema, schema

Expression = str | Col | Node
On = str | Sequence[str] | Mapping[str, str]


@explained
@dataclass(frozen=True, slots=True)
class Stream:
    """Rows on their way to windows; every step returns a new stream."""

    inputs: tuple[Input, ...]
    keys: tuple[str, ...] = ()

    if not TYPE_CHECKING:
        __getattr__, __getitem__ = unknown_name, not_rows

    @property
    def schema(self) -> Schema:
        """The columns of a row at this point."""
        return self.inputs[0].schema

    def where(self, predicate: Expression | RowPredicate) -> Stream:
        """Keep the rows for which a predicate holds; before `event_time` it says what the stream is."""
        if isinstance(predicate, (str, Col, Node)):
            return self._with(Where(expression(predicate)))
        return self._with(Where(_callable(predicate, "where")))

    def select(self, *columns: str, **computed: Expression) -> Stream:
        """These columns and these computed ones, and no others."""
        kept = tuple((name, Name(name)) for name in columns)
        return self._with(Project((*kept, *_computed(computed)), keep=False))

    def with_columns(self, **computed: Expression) -> Stream:
        """All columns there are, and these computed ones."""
        return self._with(Project(_computed(computed), keep=True))

    def map(self, function: RowFunction, *, schema: str | Schema | None = None) -> Stream:
        """A Python function of a row (a dict), giving a row; `schema` says its columns where they change."""
        return self._with(Map(_callable(function, "map"), self._declared(schema)))

    def map_batches(self, function: BatchFunction, *, schema: str | Schema | None = None) -> Stream:
        """A Python function of an Arrow batch, giving one; retried row by row if it throws."""
        return self._with(MapBatches(_callable(function, "map_batches"), self._declared(schema)))

    def union(self, *others: Stream) -> Stream:
        """The rows of several streams with the same columns."""
        check_union((self, *others))
        return Stream(tuple(one for stream in (self, *others) for one in stream.inputs), self.keys)

    def event_time(self, column: str, *, watermark: Watermark | None = None, unit: str | None = None) -> Stream:
        """The column that says when it happened, and how the watermark follows it, which must be said."""
        if watermark is None:
            self.schema.type_of(column, "event_time")
            raise PlanError(
                f"event_time({column!r}) does not say how the watermark follows it",
                "without a watermark no window is ever complete",
                f'write .event_time({column!r}, watermark=ps.bounded("2 minutes"))',
            )
        return self._timed(TimeBase("event", column, unit, watermark))

    def ingestion_time(self, column: str, *, watermark: Watermark | None = None, unit: str | None = None) -> Stream:
        """The column in which the log says when it took the row in; in order within a partition."""
        return self._timed(TimeBase("ingestion", column, unit, watermark or ascending()))

    def processing_time(self) -> Stream:
        """The processing clock: a row's time is the `now` of the batch that reads it, and nothing is late."""
        return self._timed(TimeBase("processing", None, None, by_hand(max_skew=None)))

    def key_by(self, *columns: str) -> Stream:
        """Group by these columns; null is a key like any other."""
        for column in columns:
            self.schema.type_of(column, "key_by")
        return Stream(self.inputs, columns)

    def window(self, rule: WindowRule, *, lateness: Duration | None = None) -> Windowed:
        """Where in event time, and how long a complete window still takes corrections: as long as what it reads."""
        if not isinstance(rule, WindowRule):
            raise PlanError(
                f"{rule!r} is not a window",
                "a window says where in event time records are put together",
                'write .window(ps.tumbling("5 minutes"))',
            )
        late = not_negative(self._late(lateness), "lateness")
        return Windowed(self, rule, late, AtWatermark(None, None), None)

    def process(
        self,
        function: KeyedFunction,
        *,
        ordered: bool = False,
        rules: Stream | Table | None = None,
        rule_key: str | Sequence[str] | None = None,
        deleted: str | None = None,
    ) -> Rows:
        """A function with state and timers for each key; `ordered` gives it the events in order of event time.

        `rules` are rows that every key sees, by `rule_key`; one whose column `deleted` is true is withdrawn.
        """
        check_rules(rules, rule_key, deleted)
        if rules is None:
            return self._remembering("process", process_rule(function, ordered=ordered))
        changes, gone = _changes(rules, deleted, "process(rules=)")
        if not isinstance(changes, Stream):
            raise PlanError(
                f"process was given the rules {rules!r}",
                "rules are rows that come and go while it runs",
                'give a stream or a ps.table: rules=ps.events(…, name="rules")',
            )
        keys = changes.key_by(*((rule_key,) if isinstance(rule_key, str) else rule_key or ())).keys
        ruling = Entry("rules", changes.inputs, keys, "everywhere", waited=False)
        return self._remembering("process", process_rule(function, ordered=ordered, deleted=gone), ruling)

    def dedup(
        self, *columns: str, within: Duration | None = None, keep: str = "first", lateness: Duration | None = None
    ) -> Rows:
        """Of rows that are equal in these columns and near in event time, one."""
        rule = dedup_rule(within=within, keep=keep, lateness=self._late(lateness))
        return self.key_by(*columns)._remembering("dedup", rule)

    def top(
        self,
        n: int,
        *,
        by: str | None = None,
        best: Best = "greatest",
        window: WindowRule | None = None,
        lateness: Duration | None = None,
    ) -> Rows:
        """The best rows of each key with their ranks: every change as it comes, or the answer of each window."""
        if window is None and lateness is not None:
            raise PlanError(
                f"top was given lateness={lateness!r} and no window",
                "lateness says how long a complete window still takes rows; without one no row is late",
                'leave it out, or write window=ps.tumbling("1 hour")',
            )
        rule = top_rule(n, by=by, best=best, window=window, lateness=not_negative(self._late(lateness), "lateness"))
        return self._remembering("top", rule)

    def match(
        self,
        pattern: Pattern,
        *,
        output: Mapping[str, Expression] | None = None,
        skip: Skip | None = None,
        timeouts: bool = False,
        lateness: Duration | None = None,
        keep: str | None = None,
        limit: int = LIMIT,
    ) -> Rows:
        """Where the events of a key, in order of event time, fit a pattern."""
        rule = match_rule(
            pattern, output=output, skip=skip, timeouts=timeouts, lateness=self._late(lateness), keep=keep, limit=limit
        )
        return self._remembering("match", rule)

    def join(
        self,
        other: Stream,
        *,
        on: On | None = None,
        between: tuple[Limit, Limit] | None = None,
        window: WindowRule | None = None,
        how: How = "inner",
        keep: str | None = None,
        inclusive: tuple[bool, bool] = (True, True),
        prefix: str = "",
        lateness: Duration | None = None,
    ) -> Rows:
        """Rows of two streams with equal keys, whose event times are near, or that lie in one window."""
        mine, theirs = self._met(other, on, "join")
        rule = join_rule(
            between=between,
            window=window,
            how=how,
            keep=keep,
            inclusive=inclusive,
            prefix=prefix,
            lateness=self._late(lateness, *theirs.inputs),
        )
        return mine._remembering("join", rule, theirs)

    def temporal_join(
        self,
        versions: Stream,
        *,
        on: On | None = None,
        how: TemporalHow = "inner",
        lateness: Duration | None = None,
        deleted: str | None = None,
        prefix: str = "",
    ) -> Rows:
        """Each row with the version of a table that was valid at its own event time."""
        mine, theirs = self._met(versions, on, "temporal_join")
        late = self._late(lateness, *theirs.inputs)
        rule = temporal_rule(how=how, lateness=late, deleted=deleted, prefix=prefix)
        return mine._remembering("temporal join", rule, theirs)

    def join_table(
        self,
        table: Stream | Table,
        *,
        on: On | None = None,
        how: TemporalHow = "inner",
        deleted: str | None = None,
        prefix: str = "",
        broadcast: bool = False,
    ) -> Rows:
        """Each row with a table as it stands: the last row of another stream for the key, or a `ps.table`.

        `broadcast` keeps all of a small table on every shard, so that the rows that meet it may be anywhere.
        """
        changes, gone = _changes(table, deleted, "join_table")
        rule = table_rule(how=how, deleted=gone, prefix=prefix, broadcast=broadcast)
        mine, theirs = self._met(changes, on, "join_table")
        theirs = replace(theirs, dealt="everywhere" if broadcast else "by key", waited=False)
        return mine._remembering("table join", rule, theirs, dealt="evenly" if broadcast else "by key")

    def enrich(
        self,
        function: Asked,
        *,
        output: str | Schema | None = None,
        on: str | Sequence[str] | None = None,
        concurrency: int = 100,
        timeout: Duration = "10 seconds",
        retries: int = 3,
        backoff: Duration = "100 milliseconds",
        give_up: Duration = "1 minute",
        cache: Duration | None = None,
        cache_rows: int = CACHE_ROWS,
        on_error: str = "quarantine",
    ) -> Rows:
        """Each row with what a function outside, async or plain, says of it, or of the columns named by `on`."""
        rule = enrich_rule(
            function,
            output=output,
            on=on,
            concurrency=concurrency,
            timeout=timeout,
            retries=retries,
            backoff=backoff,
            give_up=give_up,
            cache=cache,
            cache_rows=cache_rows,
            on_error=on_error,
        )
        dealt = Stream(self.inputs, self.keys or rule.on)
        return replace(dealt._remembering("enrich", rule), keys=self.keys)

    def split(self, **predicates: Expression) -> dict[str, Stream]:
        """Streams by name: a row goes to the first whose predicate holds, or to `rest`."""
        if not predicates or "rest" in predicates:
            raise PlanError(
                "split into nothing" if not predicates else "a part of a split is called rest",
                "each part has a name and a predicate; rows for which none holds are in the part called rest",
                'write bids.split(high="price > 1000", low="price <= 1000")',
            )
        tests = {name: expression(source) for name, source in predicates.items()}
        branches = tuple((test, Literal(place, "long")) for place, test in enumerate(tests.values()))
        chosen = Case(branches, Literal(len(tests), "long"))
        names = (*tests, "rest")
        return {name: self.where(Compare("=", chosen, Literal(place, "long"))) for place, name in enumerate(names)}

    def write(self, sink: Any) -> Output:
        """Write the rows as they are to a sink."""
        timed = self if all(one.time is not None for one in self.inputs) else self.processing_time()
        return Stream(timed.inputs)._remembering("rows", Pass()).write(sink)

    def trigger(self, when: Trigger) -> NoReturn:
        """Refused before `window`, as are the four below."""
        raise _windowless("trigger")

    def accumulating(self) -> NoReturn:
        raise _windowless("accumulating")

    def discarding(self) -> NoReturn:
        raise _windowless("discarding")

    def retracting(self) -> NoReturn:
        raise _windowless("retracting")

    def aggregate(self, **aggregates: Aggregate) -> NoReturn:
        raise _windowless("aggregate")

    def _timed(self, time: TimeBase) -> Stream:
        for one in self.inputs:
            check_time(one, time)
        return Stream(tuple(replace(one, time=time) for one in self.inputs), self.keys)

    def _with(self, step: RowStep) -> Stream:
        def on(one: Input) -> Input:
            step.output(one.schema)
            if one.time is None:
                return replace(one, before=(*one.before, step))
            return replace(one, after=(*one.after, step))

        return Stream(tuple(on(one) for one in self.inputs), self.keys)

    def _remembering(self, label: str, operator: Operator, *others: Entry, dealt: Dealt = "by key") -> Rows:
        """A stage over this stream, keyed as it is, and others beside it."""
        joined = any(entry.name == "right" for entry in others)
        mine = Entry("left" if joined else "rows", self.inputs, self.keys, dealt)
        stage = RowStage(label, (mine, *others), operator)
        checked(stage)
        return Rows.of(stage, MAIN)

    def _met(self, other: Stream, on: On | None, where: str) -> tuple[Stream, Entry]:
        """This stream and another, each keyed by the columns on which they meet."""
        if not isinstance(other, Stream):
            raise PlanError(
                f"{where} with {other!r}, which is not a stream",
                "rows of two streams meet where their keys are equal",
                f'write impressions.{where}(clicks, on="ad", ...) with clicks = ps.events(..., name="clicks")',
            )
        left, right = on_columns(on, where)
        return self.key_by(*left), Entry("right", other.inputs, other.key_by(*right).keys)

    def _late(self, said: Duration | None, *others: Input) -> Duration:
        """The lateness that was said, or that of the stages whose rows are read."""
        return timedelta(microseconds=inherited_lateness(*self.inputs, *others)) if said is None else said

    def _declared(self, declared: str | Schema | None) -> Schema:
        return self.schema if declared is None else schema(declared)


@explained
@dataclass(frozen=True, slots=True)
class Rows(Stream):
    """What a stage gives: a stream, which can be written as it is, with its late and quarantined rows beside it."""

    stage: RowStage = field(kw_only=True)
    name: str = field(default=MAIN, kw_only=True)

    @classmethod
    def of(cls, stage: RowStage, name: str) -> Rows:
        """An output of a stage."""
        return cls((Derived(stage, name).input(),), stage=stage, name=name)

    def output(self, name: str) -> Rows:
        """Another output of the stage, such as the time-outs of a pattern."""
        if name not in tuple(self.stage.outputs):
            raise PlanError(
                f"{self.stage.label} has no output {name!r}",
                f"it has {', '.join(self.stage.outputs)}",
                did_you_mean(str(name), tuple(self.stage.outputs)),
            )
        return Rows.of(self.stage, name)

    def write(self, sink: Any) -> Output:
        """Write the rows to a sink."""
        return Branch(self.stage, "rows", self.name).write(sink)

    def late_of(self, side: str) -> Branch:
        """The rows of one of several streams that came too late."""
        names = [entry.name for entry in self.stage.entries]
        if side not in names:
            raise PlanError(
                f"{self.stage.label} has no side {side!r}",
                f"it has {', '.join(names)}",
                did_you_mean(str(side), names),
            )
        return Branch(self.stage, "late", side)

    @property
    def late(self) -> Branch:
        """The rows that came too late, of the first stream where there are two."""
        return self.late_of(self.stage.entries[0].name)

    @property
    def quarantine(self) -> Branch:
        """The rows that could not be used, each as it came, with the reason."""
        return Branch(self.stage, "quarantine")

    @property
    def archive(self) -> Branch:
        """Every row as the source gave it, before any step, with its partition, its offset and its batch."""
        return Branch(self.stage, "archive")

    def explain(self) -> str:
        """All stages up to this one, in words."""
        return explain_flow(flow_of((self.stage,)))

    def check(self) -> tuple[str, ...]:
        """What is allowed but costly or surprising."""
        return checked(self.stage)

    def __str__(self) -> str:
        return self.explain()


def _changes(table: Any, deleted: str | None, where: str) -> tuple[Stream, str | None]:
    """A table as a stream of changes, and the column that says of a row that it is gone.

    W does not wait for it, so that it may have no event time; it then has the time of its batch.
    """
    if isinstance(table, Table):
        if deleted is not None:
            raise PlanError(
                f"{where} with a ps.table and deleted={deleted!r}",
                "a table that is read whole says by itself what is gone: what it has no more",
                "leave deleted= out; rows that are not meant to be there belong out of the table",
            )
        table, deleted = Stream((table.changes,)), REMOVED
    if not isinstance(table, Stream) or all(one.time is not None for one in table.inputs):
        return table, deleted
    return table.processing_time(), deleted


def _windowless(step: str) -> PlanError:
    return PlanError(
        f".{step}(...) on a stream that has no windows",
        "what is computed, when it is shown and how panes relate are said of windows",
        f'write .window(ps.tumbling("5 minutes")) first, then .{step}(...)',
    )


def _computed(computed: dict[str, Expression]) -> tuple[tuple[str, Node], ...]:
    return tuple((name, expression(source)) for name, source in computed.items())


def _callable(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    if not callable(function):
        raise PlanError(
            f"{what} was given {function!r}, which is not a function",
            f"{what} calls a function for each row or batch",
            f"write .{what}(lambda row: …)",
        )
    return function
