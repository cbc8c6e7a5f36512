"""A pipeline: results and where each is written, under one name, one checkpoint and one promise of delivery."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from penstock.diagnostics.unknown_names import explained, in_words, unknown_name
from penstock.errors import PlanError, did_you_mean
from penstock.plan.explain import explain_flow
from penstock.plan.graph import AnyStage, Flow, flow_of
from penstock.plan.output_schemas import entry_of
from penstock.plan.stages import Input, MaxBad, Plan, max_bad_of
from penstock.plan.validate import checked
from penstock.types.durations import Duration, positive

if TYPE_CHECKING:
    from penstock.spark.handle import Ended, Handle

Kind = Literal["panes", "rows", "late", "quarantine", "archive"]
Delivery = Literal["exactly_once", "at_least_once", "at_most_once"]
LATE_NAMES = ("late_event_time", "late_watermark", "late_by", "late_partition", "late_offset", "late_windows")
ARCHIVE_NAMES = ("archive_source", "archive_partition", "archive_offset", "archive_batch")


@dataclass(frozen=True, slots=True)
class Output:
    """One stream of a stage's results on its way to one sink; `name` says which, where there are several of a kind."""

    plan: AnyStage
    kind: Kind
    sink: Any
    name: str = ""

    if not TYPE_CHECKING:
        __getattr__ = unknown_name


@explained
@dataclass(frozen=True, slots=True)
class Branch:
    """Rows beside the results: those that were late, those that could not be used, or all as they were read."""

    plan: AnyStage
    kind: Kind
    name: str = ""

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    def write(self, sink: Any) -> Output:
        """Write these rows to a sink."""
        return _output(self.plan, self.kind, sink, self.name)


@explained
@dataclass(frozen=True, slots=True)
class Pipeline:
    """What runs: outputs of one plan, each to a sink."""

    name: str
    outputs: tuple[Output, ...]
    delivery: Delivery = "exactly_once"
    shards: int | None = None
    batch_rows: int | None = None
    staging: str | None = field(default=None, kw_only=True)
    batch_target: int = field(default=10_000_000, kw_only=True)

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    @property
    def flow(self) -> Flow:
        """All stages, in order."""
        return flow_of(output.plan for output in self.outputs)

    @property
    def plan(self) -> Plan:
        """The windows, where the pipeline is nothing else."""
        stages = self.flow.stages
        if len(stages) > 1 or not isinstance(stages[0], Plan):
            raise PlanError(
                f"the pipeline {self.name!r} has stages other than one of windows",
                f"it is made of {', '.join(stage.label for stage in stages)}",
                "do this with a pipeline of windows alone",
            )
        return stages[0]

    def rebuilt(self, flow: Flow) -> Pipeline:
        """The same outputs of other stages, each in the place of the one it had."""
        before = self.flow.stages
        outputs = tuple(replace(one, plan=flow.stages[before.index(one.plan)]) for one in self.outputs)
        return replace(self, outputs=outputs)

    def bearing(self, most: MaxBad, *, where_unsaid: bool = False) -> Pipeline:
        """The same with so many bad rows of each source, or of those that do not say how many."""

        def with_limit(one: Input) -> Input:
            limit = one.source.max_bad if where_unsaid and one.source.max_bad is not None else most
            return replace(one, source=replace(one.source, max_bad=limit))

        return self.rebuilt(self.flow.rebuilt(with_limit))

    def explain(self) -> str:
        """What, where, when, how, and where it goes, in words."""
        lines = [explain_flow(self.flow), f"Delivery    {self.delivery.replace('_', ' ')}"]
        for output in self.outputs:
            lines.append(f"Output      {output.kind} to {output.sink.describe()}")
        return "\n".join(lines)

    def check(self) -> tuple[str, ...]:
        """What is allowed but costly or surprising."""
        return tuple(said for stage in self.flow.stages for said in checked(stage))

    def run(
        self,
        *,
        checkpoint: str,
        batch_every: Duration = "1 second",
        until: str | None = None,
        spark: Any = None,
        on_progress: Any = None,
        observe: bool = True,
        max_bad: int | str | None = None,
    ) -> Ended:
        """Run until stopped, or until the input is drained (`"caught_up"`) or has ended (`"end"`).

        What is observed is kept beside the checkpoint, for the dashboard, for pictures and for questions: a sample of
        events and panes and the clocks of each batch, up to 64 MB. `observe=False` keeps nothing. `max_bad` says for
        this run how many bad rows of each source are borne; if all of one were bad, the run raises at its end unless
        that is "100%".
        """
        bearing = self._borne(max_bad)
        ended: Ended = _runner().run(
            bearing,
            checkpoint=checkpoint,
            batch_every=batch_every,
            until=until,
            spark=spark,
            on_progress=on_progress,
            observe=observe,
        )
        return ended

    def start(
        self,
        *,
        checkpoint: str,
        batch_every: Duration = "1 second",
        until: str | None = None,
        spark: Any = None,
        on_progress: Any = None,
        observe: bool = True,
        max_bad: int | str | None = None,
    ) -> Handle:
        """Run in the background; the handle stops it, waits for it and says how it stands."""
        bearing = self._borne(max_bad)
        handle: Handle = _runner().start(
            bearing,
            checkpoint=checkpoint,
            batch_every=batch_every,
            until=until,
            spark=spark,
            on_progress=on_progress,
            observe=observe,
        )
        return handle

    def _borne(self, limit: int | str | None) -> Pipeline:
        most = max_bad_of(limit)
        return self if most is None else self.bearing(most)


def pipeline(
    name: str,
    *outputs: Output,
    delivery: Delivery = "exactly_once",
    shards: int | None = None,
    batch_rows: int | None = None,
    batch_target: Duration = "10 seconds",
    staging: str | None = None,
) -> Pipeline:
    """Outputs under one name and one checkpoint; refused here if they cannot be right.

    A batch takes so much that it lasts about `batch_target`, and never more than `batch_rows` of a source.
    """
    _check_name(name)
    if not outputs or not all(isinstance(output, Output) for output in outputs):
        wrong = next((output for output in outputs if not isinstance(output, Output)), None)
        raise PlanError(
            f"the pipeline {name!r} writes nothing" if not outputs else f"{in_words(wrong)} is not an output",
            "a pipeline is made of results and where each is written",
            f'write ps.pipeline({name!r}, totals.write(ps.sqlite("answers.db", table="totals")))',
        )
    flow = flow_of(output.plan for output in outputs)
    if not _connected(flow):
        raise PlanError(
            f"the outputs of {name!r} have nothing in common",
            "what one pipeline runs has one watermark: each of its results reads a source or a stage of another",
            "make one pipeline of each; they may share a Spark session",
        )
    if delivery not in get_args(Delivery):
        raise PlanError(
            f"delivery is {delivery!r}",
            "a pipeline delivers exactly once, at least once or at most once",
            did_you_mean(str(delivery), get_args(Delivery)),
        )
    for what, number in (("shards", shards), ("batch_rows", batch_rows)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
            raise PlanError(f"{what} is {number!r}", f"{what} is a whole number above zero", f"write {what}=4")
    _check_places(name, outputs)
    return Pipeline(
        name,
        outputs,
        delivery,
        shards,
        batch_rows,
        staging=staging,
        batch_target=positive(batch_target, "batch_target"),
    )


def _runner() -> Any:
    """What runs a pipeline; found by its name, for a plan is made and tested without Spark."""
    try:
        return importlib.import_module("penstock.spark.run")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("pyspark", "pyarrow", "numpy", "py4j"):
            raise
        raise PlanError(
            f"{error.name} is not installed",
            "a pipeline runs on Spark; the library alone does without",
            "write: pip install 'penstock[spark]'",
        ) from None


def _connected(flow: Flow) -> bool:
    """Whether stages that share a source, or read one another, are all stages there are."""
    reach = [
        set(flow.own_sources(number)) | {f"#{number}", *(f"#{one}" for one in flow.above(number))}
        for number in range(len(flow.stages))
    ]
    joined = reach[0]
    for _ in reach:
        for one in reach:
            if one & joined:
                joined |= one
    return all(one <= joined for one in reach)


def _output(plan: AnyStage, kind: Kind, sink: Any, name: str = "") -> Output:
    if not callable(getattr(sink, "open", None)) or isinstance(sink, type):
        raise PlanError(
            f"{in_words(sink)} is not a sink",
            "a sink says where rows are written",
            'write .write(ps.sqlite("answers.db", table="totals")), or ps.console() to look at them',
        )
    if kind == "late":
        taken = [one for one in LATE_NAMES if one in entry_of(plan, name).schema.names]
        if taken:
            raise PlanError(
                f"the late rows have a column {taken[0]!r} of their own",
                "the columns that say why a row is late have that name too",
                f"rename it before the window: .select(..., {taken[0]}_given={taken[0]!r})",
            )
    if kind == "archive":
        _check_archive(plan, sink)
    from penstock.plan.output_schemas import target_of

    sink.refuse(target_of(plan, kind, "unnamed", name))
    return Output(plan, kind, sink, name)


def _check_archive(plan: AnyStage, sink: Any) -> None:
    """Refuse an archive that the tasks that read cannot write, or of rows that do not go into one table."""
    if not callable(getattr(sink, "stage", None)) or getattr(sink, "stages_all", False):
        raise PlanError(
            f"an archive cannot be written to {sink.describe()}",
            "the tasks that read the source write it, file by file; no raw row passes through the driver",
            'write totals.archive.write(ps.files("events/"))',
        )
    sources = flow_of((plan,)).inputs
    schemas = {one.source.schema: one.source.name for one in sources}
    if len(schemas) > 1:
        raise PlanError(
            f"the sources {' and '.join(schemas.values())} have different columns, and one archive",
            "the files of an archive are one table",
            "archive each source by a pipeline of its own",
        )
    taken = [name for name in ARCHIVE_NAMES if name in sources[0].source.schema.names]
    if taken:
        raise PlanError(
            f"the source has a column {taken[0]!r} of its own",
            "the columns that say where an archived row was read have that name too",
            "rename it in the source",
        )


def _check_name(name: Any) -> None:
    plain = isinstance(name, str) and name and all(sign.isalnum() or sign in "-_." for sign in name)
    if not plain:
        raise PlanError(
            f"a pipeline cannot be called {name!r}",
            "the name stands in ledgers and file names: letters, digits, '-', '_' and '.'",
            'write ps.pipeline("team-scores", ...)',
        )


def _check_places(name: str, outputs: tuple[Output, ...]) -> None:
    seen: dict[str, Kind] = {}
    for output in outputs:
        place = getattr(output.sink, "place", None)
        if place is None:
            continue
        if place in seen:
            raise PlanError(
                f"the pipeline {name!r} writes its {seen[place]} and its {output.kind} to one place: {place}",
                "two outputs in one table would overwrite one another",
                "give each output a table or a path of its own",
            )
        seen[place] = output.kind
