"""A stream in windows: when panes are shown, how they relate, what is computed; and the panes that come of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.api.pipeline import Branch, Output
from penstock.diagnostics.unknown_names import explained, not_rows, unknown_name
from penstock.errors import PlanError
from penstock.model.aggregates import Aggregate
from penstock.model.panes import Mode
from penstock.model.triggers import Trigger
from penstock.model.windows import WindowRule
from penstock.plan.explain import explain_flow
from penstock.plan.graph import flow_of
from penstock.plan.stages import PANES, Derived, Plan
from penstock.plan.validate import check
from penstock.plan.validate_retractions import refuse_refiring

if TYPE_CHECKING:
    from penstock.api.stream import Stream


@explained
@dataclass(frozen=True, slots=True)
class Windowed:
    """A stream cut into windows, waiting to hear when, how and what."""

    stream: Stream
    rule: WindowRule
    lateness: int
    when: Trigger
    mode: Mode | None

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    def trigger(self, when: Trigger) -> Windowed:
        """When panes are emitted."""
        if not isinstance(when, Trigger):
            raise PlanError(
                f"{when!r} is not a trigger",
                "a trigger says when a window shows a pane",
                "write .trigger(ps.at_watermark())",
            )
        return replace(self, when=when)

    def accumulating(self) -> Windowed:
        """Each pane is the whole answer so far."""
        return replace(self, mode="accumulating")

    def discarding(self) -> Windowed:
        """Each pane is only what is new."""
        return replace(self, mode="discarding")

    def retracting(self) -> Windowed:
        """Each pane is the whole answer so far, preceded by the withdrawal of the one before."""
        return replace(self, mode="retracting")

    def aggregate(self, **aggregates: Aggregate) -> Panes:
        """What is computed; builds the plan and refuses one that cannot be right."""
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise PlanError(
                    f"{name} = {aggregate!r} is not an aggregate",
                    "an aggregate says what is computed of a window's records",
                    f'write {name}=ps.rows() or {name}=ps.sum("points")',
                )
        plan = Plan(
            self.stream.inputs,
            self.stream.keys,
            self.rule,
            self.lateness,
            self.when,
            self.mode,
            tuple(aggregates.items()),
        )
        check(plan)
        return Panes(plan)


@explained
@dataclass(frozen=True, slots=True)
class Panes:
    """The results of a plan: a stream of panes, with its late and quarantined rows beside it."""

    plan: Plan

    if not TYPE_CHECKING:
        __getattr__, __getitem__ = unknown_name, not_rows

    @property
    def stream(self) -> Stream:
        """The panes as a stream, for the next stage."""
        from penstock.api.stream import Stream  # which needs this module to cut a stream into windows

        refuse_refiring(self.plan)
        return Stream((Derived(self.plan, PANES).input(),))

    def explain(self) -> str:
        """What, where, when and how, in words."""
        return explain_flow(flow_of((self.plan,)))

    def check(self) -> tuple[str, ...]:
        """What is allowed but costly or surprising."""
        return check(self.plan)

    def write(self, sink: Any) -> Output:
        """Write the panes to a sink."""
        return Branch(self.plan, "panes").write(sink)

    @property
    def late(self) -> Branch:
        """The rows no window would take, with W, how late they were and what they missed."""
        return Branch(self.plan, "late")

    @property
    def quarantine(self) -> Branch:
        """The rows that could not be used, each as it came, with the reason."""
        return Branch(self.plan, "quarantine")

    @property
    def archive(self) -> Branch:
        """Every row as the source gave it, before any step, with its partition, its offset and its batch."""
        return Branch(self.plan, "archive")

    def __str__(self) -> str:
        return self.explain()
