"""What people read on the console, and what their function is called with."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from penstock.connectors.console import ConsoleWriter, console, window
from penstock.connectors.foreach_batch import foreach_batch
from penstock.connectors.sink_errors import SinkError
from tests.unit.connectors.sinks.outputs import (
    LATES,
    NOON,
    PANES,
    SCORES,
    all_types,
    batch_of,
    give,
    late_rows,
    pane,
    panes,
)

TABLE = panes(pane("red", 1), pane("blue", 12_345))


def test_a_batch_is_a_table(capsys):
    give(console(), TABLE, target=replace(PANES, withdraws=False))
    assert capsys.readouterr().out == (
        "panes of batch 0 · 2\n"
        "  team  window                    points  pane\n"
        "  ────  ────────────────────────  ──────  ────────\n"
        "  red   2026-01-31 12:00 – 12:05       1  early #0\n"
        "  blue  2026-01-31 12:00 – 12:05   12345  early #0\n"
        "\n"
    )


def test_a_sign_is_shown_where_withdrawals_can_come(capsys):
    give(console(), panes(pane("red", 1, op=-1), pane("red", 2, index=1)))
    lines = capsys.readouterr().out.splitlines()
    assert [line[2] for line in lines[3:5]] == ["−", "+"]


def test_an_empty_batch_says_nothing(capsys):
    give(console(), panes(), parts=[])
    assert capsys.readouterr().out == ""


def test_a_long_batch_is_cut_and_the_rest_counted(capsys):
    many = panes(*(pane(f"team-{n}", n) for n in range(400)))
    give(console(), many, parts=[many.slice(0, 15), many.slice(15)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 + 20 + 1 + 1
    assert lines[-2] == "  … and 380 more"


def test_a_batch_that_comes_back_is_said_to(capsys):
    writer = console().open(PANES)
    batch = replace(batch_of(3, TABLE), replayed=True)
    writer.write(batch, [TABLE])
    writer.commit(batch)
    assert "panes of batch 3 · 2 · again" in capsys.readouterr().out


def test_values_cannot_steer_the_terminal(capsys):
    give(console(), panes(pane("\x1b[31mred\r\n", 1), pane("x" * 100, None), pane(None, 2)))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b[31mred\\r\\n" in shown
    assert f"{'x' * 59}… " in shown
    assert "∅" in shown


def test_columns_called_as_ours_are_shown_beside_them(capsys):
    schema = SCORES.set(0, pa.field("window", pa.string())).set(3, pa.field("pane", pa.int64()))
    table = TABLE.rename_columns(schema.names)
    give(console(), table, target=replace(PANES, schema=schema, keys=("window", "window_start", "window_end")))
    assert capsys.readouterr().out.splitlines()[1].split() == ["window", "window", "pane", "pane"]


def test_other_rows_and_all_types_are_shown(capsys):
    give(console(), late_rows(), target=LATES)
    give(console(), all_types(), target=replace(PANES, schema=all_types().schema))
    assert "late of batch 0 · 1" in capsys.readouterr().out


def test_a_terminal_gets_a_table_of_rich():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    writer = ConsoleWriter(console(rows=1), PANES, out)
    table = panes(pane("[red]x[/red]", 1), pane("blue", 2))
    writer.write(batch_of(0, table), [table])
    writer.commit(batch_of(0, table))
    assert "[red]x[/red]" in out.getvalue()
    assert "… and 1 more" in out.getvalue()


@pytest.mark.parametrize(("start", "end", "said"), [
    (NOON, NOON + timedelta(minutes=5), "2026-01-31 12:00 – 12:05"),
    (NOON, NOON + timedelta(seconds=1.5), "2026-01-31 12:00 – 12:00:01.5"),
    (NOON, NOON + timedelta(days=1), "2026-01-31 12:00 – 2026-02-01 12:00"),
    (None, None, "all time"),
    (NOON, None, "2026-01-31 12:00 – ∞"),
])  # fmt: skip
def test_a_window_in_words(start, end, said):
    assert window(start, end) == said


def test_a_console_says_that_it_is_at_least_once():
    assert "at least once" in console().describe()


def test_the_function_gets_the_frame_and_the_batch():
    calls = []
    sink = foreach_batch(lambda rows, batch: calls.append((rows, batch)))
    assert give(sink, TABLE, 3, parts="a DataFrame")
    assert give(sink, TABLE, 3, parts="a DataFrame"), "it is called again: it has no ledger"
    (rows, batch), again = calls
    assert rows == "a DataFrame"
    assert (batch.token, batch.rows, batch.replayed) == ("L1/3", 2, False)
    assert again[1] == batch
    assert sink.wants_dataframe
    assert "exactly once if it is idempotent by batch.token" in sink.describe()


def test_an_error_in_the_function_is_not_swallowed():
    def fails(rows, batch):
        raise ValueError("mine")

    with pytest.raises(SinkError, match=r"ValueError: mine · in fails \(test_console\.py") as caught:
        give(foreach_batch(fails), TABLE, parts="a DataFrame")
    assert isinstance(caught.value.__cause__, ValueError)
