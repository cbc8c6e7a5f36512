"""Which output fits which sink: one table of form, kind of stream and mode, and what becomes of each.

Three forms of sink. *upsert* keeps one row per key and window (`ps.sqlite`, `ps.duckdb`, `ps.postgres`), *history*
keeps that and every pane (the same with `history=True`), *append* takes every row (`ps.files`, `ps.memory`,
`ps.console`, `ps.foreach_batch`).

| form | panes, accumulating | panes, retracting | panes, discarding | rows, late, quarantine |
|---|---|---|---|---|
| upsert | net: the last +1 of a window, deleted where a -1 stays | the same | refused | appended |
| history | net, and every pane with its op beside it | the same | every pane with its op, no current answer | refused |
| append | every pane with its op | the same | the same | appended |

Rows of which one stands for each key (a running top-N: the key and the rank) are taken as retracting panes are.

Whether windows fire again or panes are withdrawn changes no cell: an upsert takes a second pane as an update and a
withdrawal as a delete; in an appended stream `pane_index` and `op` tell which pane is the last. Discarding stays
refused for an upsert also where a window fires once: a change of trigger would else turn the table wrong in silence.
"""

from __future__ import annotations

from penstock.errors import PlanError
from penstock.plan.output_schemas import Target

NET, NET_AND_EVERY, EVERY, APPENDED = "net", "net and every pane", "every pane", "appended"
REFUSED = "refused"
MODES = ("accumulating", "retracting", "discarding")

FITS: dict[tuple[str, str, str], str] = {
    ("upsert", "panes", "accumulating"): NET,
    ("upsert", "panes", "retracting"): NET,
    ("upsert", "panes", "discarding"): REFUSED,
    ("history", "panes", "accumulating"): NET_AND_EVERY,
    ("history", "panes", "retracting"): NET_AND_EVERY,
    ("history", "panes", "discarding"): EVERY,
    ("append", "panes", "accumulating"): EVERY,
    ("append", "panes", "retracting"): EVERY,
    ("append", "panes", "discarding"): EVERY,
    **{("upsert", kind, mode): APPENDED for kind in ("rows", "late", "quarantine") for mode in MODES},
    **{("history", kind, mode): REFUSED for kind in ("rows", "late", "quarantine") for mode in MODES},
    **{("append", kind, mode): APPENDED for kind in ("rows", "late", "quarantine") for mode in MODES},
}


def fit(form: str, target: Target, sink: str) -> str:
    """What becomes of an output in a sink of that form; raises PlanError where it does not fit."""
    kind = "panes" if target.answers else target.kind
    what = APPENDED if target.kind == "archive" else FITS[form, kind, target.mode]
    if what != REFUSED:
        return what
    if target.kind == "panes":
        raise PlanError(
            f"discarding panes cannot be written to {sink}, which keeps one row per key and window",
            "a discarding pane holds only what is new: the row would show the last piece as if it were the whole",
            "write .accumulating(), or say history=True to keep every pane, or write to ps.files(...)",
        )
    raise PlanError(
        f"{sink} is asked for a history of {target.kind} rows",
        "a history is of panes that replace one another; these rows are all kept as they come",
        "leave history=True out",
    )


def check_columns(target: Target, sink: str) -> None:
    """Refuse columns whose names differ by case alone, which SQL takes for one."""
    seen: dict[str, str] = {}
    for name in target.schema.names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise PlanError(
                f"the columns {other!r} and {name!r} cannot both be written to {sink}",
                "SQL takes names that differ by case alone for one",
                f"rename one of them, such as {name.lower()}_2",
            )
