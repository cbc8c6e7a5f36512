"""The law of changed plans: one that a checkpoint accepts goes on with what was remembered under the same names."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

import penstock as ps
from penstock.checkpoint.compatibility import binding, refuse_change
from penstock.engine.state.cache import CACHE
from penstock.plan.graph import AnyStage, flow_of
from penstock.storage.local import CheckpointError
from penstock.testing import Script
from tests.properties.profile import law

AT = "2026-01-01T12:00:00Z"
VALUES = {"long": 7, "string": "seven", "double": 7.5, "boolean": True}
Fields = dict[str, tuple[str, bool]]
fields = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.sampled_from(sorted(VALUES)), st.booleans()), min_size=1, max_size=4
)
wheres = st.lists(st.sampled_from(["v > 1", "v > 2", "v > 3"]), min_size=1, max_size=3, unique=True)


def source() -> ps.Stream:
    return ps.events("k string, v long, at timestamp", name="e").event_time("at", watermark=ps.by_hand())


def accepted(before: list[AnyStage], after: list[AnyStage]) -> bool:
    """Whether the checkpoint of some stages goes on with others."""
    try:
        refuse_change("here", binding(flow_of(before), 1), binding(flow_of(after), 1))
    except CheckpointError:
        return False
    return True


def remembering(declared: Fields) -> ps.Rows:
    """A function that remembers of each key the value of each field's type and its name, and gives what it has."""

    def on_event(self: Any, event: Any, key: Any, context: Any) -> None:
        context.emit({"known": repr({name: getattr(self, name) for name in sorted(declared)})})
        for name, (kind, _) in declared.items():
            setattr(self, name, f"{name}!" if kind == "string" else VALUES[kind])

    state = {name: ps.value(kind, ttl="1 day" if lasting else None) for name, (kind, lasting) in declared.items()}
    function = type("Remembering", (ps.KeyedFunction,), {"output": "known string", "on_event": on_event, **state})
    return source().key_by("k").process(function())


@law(60)
@given(fields, fields, st.randoms(use_true_random=False))
def test_state_goes_on_under_its_names_or_not_at_all(before: Fields, after: Fields, chance: Any) -> None:
    if chance.random() < 0.5:  # the same fields, declared in another order
        after = dict(chance.sample(list(before.items()), len(before)))
    first, then = remembering(before), remembering(after)
    assert accepted([first.stage], [then.stage]) == (before == after)
    if before != after:
        return
    script, other = Script(first, "columnar"), Script(then, "columnar")
    script.batch([{"k": "a", "v": 1, "at": AT}])
    snapshot = script.run.snapshot()
    CACHE.clear()
    other.run.restore(snapshot)
    outcome = other.batch([{"k": "a", "v": 2, "at": AT}])
    wanted = {name: f"{name}!" if kind == "string" else VALUES[kind] for name, (kind, _) in sorted(before.items())}
    assert [row.row["known"] for row in outcome.stages[-1].rows] == [repr(wanted)]


@law(60)
@given(wheres, wheres, st.booleans())
def test_stages_that_keep_the_same_things_stay_where_they_are(before: list[str], after: list[str], below: bool) -> None:
    """Another number of them is refused, and one that does what another did which does something else now.

    A `where` that changes into one that none had, or whose stage is still there, is not refused.
    """

    def stages(chosen: list[str]) -> list[AnyStage]:
        results: list[AnyStage] = []
        for where in chosen:
            rows = source().where(where)
            rows = rows.dedup("k", within="1 hour") if below else rows
            results.append(rows.key_by("k").window(ps.tumbling("1 hour")).aggregate(n=ps.rows()).plan)
        return results

    changed = [(was, now) for was, now in zip(before, after, strict=False) if was != now]
    fits = len(before) == len(after) and not {now for _, now in changed} & {was for was, _ in changed}
    assert accepted(stages(before), stages(after)) == fits
