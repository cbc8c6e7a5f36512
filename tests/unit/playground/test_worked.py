"""The presets say what the worked examples say, and the models keep the rules they model."""

from __future__ import annotations

import pytest

from penstock.playground.api import played
from penstock.playground.controls import firsts
from penstock.playground.lessons import LESSONS
from penstock.playground.lessons.backpressure import MEMORY, pulled, pushed
from penstock.playground.sample_streams import thousand


def figures(lesson: str, **values) -> dict[str, str]:
    return {one["name"]: one["value"] for one in played(lesson, values)["figures"]}


def rows(lesson: str, panel: int, **values) -> list[list[str]]:
    return [row["cells"] for row in played(lesson, values)["panels"][panel]["rows"]]


def test_the_second_purchase_is_counted_in_the_wrong_hour():
    """Example 4, and 6: an event of 11:59 that is seen at 12:01."""
    assert rows("two-clocks", 2, story="midday") == [
        ["11:00:00 – 12:00:00", "1", "0"],
        ["12:00:00 – 13:00:00", "0", "1"],
    ]
    assert rows("two-clocks", 2) == [
        ["09:00:00 – 10:00:00", "2", "1"],
        ["10:00:00 – 11:00:00", "0", "1"],
    ]
    assert figures("two-clocks")["largest skew"] == "2,592 s"


def test_a_phone_out_of_the_tunnel_fills_one_minute_by_processing_time():
    """Example 7: 200 events of 14:32 that are seen at 14:47."""
    table = {cells[0]: cells[1:] for cells in rows("two-clocks", 2, story="tunnel", size="1 minute")}
    assert table["14:32:00 – 14:33:00"] == ["200", "0"]
    assert table["14:47:00 – 14:48:00"] == ["0", "200"]


def test_eight_minutes_on_the_way_are_two_buckets_off():
    """Example 11: 10:00:00 seen at 10:08."""
    assert rows("two-clocks", 2, story="slow", size="5 minutes") == [
        ["10:00:00 – 10:05:00", "1", "0"],
        ["10:05:00 – 10:10:00", "1", "2"],
    ]
    assert figures("two-clocks", story="slow")["largest skew"] == "480 s"


def test_an_overtaken_event_is_counted_in_the_wrong_five_minutes():
    """Example 5."""
    assert rows("two-clocks", 2, story="crossed", size="5 minutes") == [
        ["12:00:00 – 12:05:00", "1", "0"],
        ["12:05:00 – 12:10:00", "1", "2"],
    ]


@pytest.mark.parametrize(
    ("mode", "panes"),
    [
        ("discarding", ["+7 early", "+7 on time", "+8 late"]),
        ("accumulating", ["+7 early", "+14 on time", "+22 late"]),
        ("retracting", ["+7 early", "−7 early", "+14 on time", "−14 on time", "+22 late"]),
    ],
)
def test_the_panes_of_one_window_in_each_mode(mode, panes):
    """Example 1."""
    assert [cells[2] for cells in rows("modes", 3) if cells[1] == mode] == panes


def test_a_consumer_that_adds_is_wrong_with_accumulating_panes_alone():
    totals = {mode: [cells for cells in rows("modes", 3) if cells[1] == mode][-1][3:] for mode in
              ("discarding", "accumulating", "retracting")}  # fmt: skip
    assert totals == {"discarding": ["22", "8"], "accumulating": ["43", "22"], "retracting": ["22", "22"]}


def test_two_sessions_are_fused_also_across_exactly_one_gap():
    """Example 3: 12:10 and 12:25, both shown, then 12:15."""
    assert [cells[1] for cells in rows("sessions", 1)][-2:] == [
        "[12:10:00, 12:22:00] 1; [12:25:00, 12:37:00] 1",
        "[12:10:00, 12:37:00] 3",
    ]
    assert rows("sessions", 1, gap=10)[-1][1] == "[12:10:00, 12:35:00] 3"
    assert figures("sessions")["withdrawn panes"] == "2"
    assert figures("sessions", lateness=0)["late"] == "1"


def test_every_dot_is_in_five_windows_of_five_minutes_each_minute():
    """Example 12."""
    shown = [int(cells[3]) for cells in rows("windows", 1, kind="sliding", size=5, slide=1)]
    points = sum(int(dot["text"]) for dot in played("windows", {})["panels"][0]["plane"]["dots"])
    assert sum(shown) == 5 * points


def test_a_phone_that_comes_back_is_late_or_one_late_pane():
    """Example 7: W stands at 14:42 when 200 events of 14:32 come."""
    assert rows("lateness", 2) == [["14:47:00", "phone", "14:32:00", "200", "14:42:00", "541 to 600 s"]]
    assert rows("lateness", 1, lateness=15)[-1][1:] == ["[14:32:00, 14:33:00)", "phone", "200", "late"]
    assert figures("lateness", lateness=15)["late rows"] == "0"


def test_one_more_event_is_a_late_row_or_a_second_pane():
    """Example 8."""
    assert [cells[3:] for cells in rows("lateness", 1, story="again")] == [["1", "on time"]]
    assert figures("lateness", story="again")["late rows"] == "1"
    assert [cells[3:] for cells in rows("lateness", 1, story="again", lateness=30)] == [["1", "on time"], ["2", "late"]]


def test_late_events_correct_their_own_window_alone():
    """Example 9."""
    panes = [cells[1:] for cells in rows("lateness", 1, story="two", delay=30, lateness=60)]
    assert panes == [
        ["[09:55:00, 10:00:00)", "red", "1", "on time"],
        ["[10:00:00, 10:05:00)", "red", "1", "on time"],
        ["[09:55:00, 10:00:00)", "red", "3", "late"],
    ]


@pytest.mark.parametrize(("story", "plays", "late"), [("together", "2", "0"), ("edge", "1", "1")])
def test_the_edge_to_the_second(story, plays, late):
    """Example 2: with 20 seconds of delay 12:00:50 makes W 12:00:30; what comes in its batch is counted."""
    given = played("lateness", {"story": story, "delay": 20})
    assert [row["cells"] for row in given["panels"][1]["rows"]] == [
        ["12:00:54", "[12:00:00, 12:00:30)", "red", plays, "on time"]
    ]
    assert given["figures"][0]["value"] == late
    assert "W 12:00:29" in next(step["text"] for step in given["steps"] if step["text"].startswith("12:00:52"))


def test_half_a_minute_after_its_end_a_window_fires():
    """Example 10: with 30 seconds of delay 10:05:30 lets [10:00, 10:05) fire, and 10:05:29 does not."""
    given = played("lateness", {"story": "half", "delay": 30})
    panes = [row["cells"] for row in given["panels"][1]["rows"]]
    assert panes == [["10:05:34", "[10:00:00, 10:05:00)", "red", "1", "on time"]]
    assert "W 10:04:59" in next(step["text"] for step in given["steps"] if step["text"].startswith("10:05:32"))


@pytest.mark.parametrize(("story", "shown"), [("tens", ["10", "20", "30"]), ("sevens", ["14", "28", "35"])])
def test_a_count_is_looked_at_when_a_batch_has_ended(story, shown):
    """Example 13, in hundredths: a count of ten over batches of ten, and of seven."""
    assert [cells[3] for cells in rows("windows", 1, kind="global", count=10, story=story)] == shown


@pytest.mark.parametrize("crash", ["never", "each"])
@pytest.mark.parametrize(("logins", "alerts"), [("FFF", 1), ("FFSFF", 0), ("FFFF", 1), ("FFFFFF", 2)])
def test_three_failed_logins_in_a_row(logins, alerts, crash):
    """Example 14, and the same across a crash."""
    assert figures("patterns", logins=logins, crash=crash)["alerts"] == str(alerts)


def test_a_login_that_is_waited_for_is_in_its_place_again():
    assert figures("patterns", slow=100, delay=0) == {"alerts": "0", "failed": "3", "late": "1"}
    assert figures("patterns", slow=100, delay=120) == {"alerts": "1", "failed": "3", "late": "0"}


def test_behind_the_line_and_late_are_two_shares():
    """Example 20, with a thousand events: 1.0 % behind 10 seconds, 0.1 % behind 60; fewer find no window."""
    for delay, behind in ((10, "10 (1.0 %)"), (60, "1 (0.1 %)")):
        table = {cells[0]: cells[2:4] for cells in rows("delay", 1, story="thousand", delay=delay)}
        assert table[f"{delay} s (now)"] == [behind, "1"]


@pytest.mark.parametrize("seed", [1, 50, 99])
def test_a_thousand_events_are_as_late_as_they_say(seed):
    late = [(event.seen - event.at) // 1_000_000 for event in thousand(seed)]
    assert (sum(one <= 10 for one in late), sum(10 < one <= 60 for one in late), late.count(3_600)) == (990, 9, 1)


def test_a_window_that_waits_for_all_is_shown_after_six_minutes_and_a_half():
    """Example 21: first event 12:02:24, shown 12:09:00."""
    assert rows("modes", 3, early="never", passes=240)[0] == ["12:09:00", "discarding", "+22 on time", "22", "22"]
    assert figures("modes", early="never", passes=240)["waited"] == "6 min 36 s"


def test_idle_lets_the_windows_go_on():
    """Example 17."""
    assert figures("silent")["windows shown"] == "3"
    assert figures("silent", idle="1 minute")["windows shown"] == "11"


def test_max_skew_keeps_a_bad_clock_from_making_others_late():
    assert figures("bad-clock")["late"] != "0"
    assert figures("bad-clock", max_skew="1 hour") | {"largest jump of the watermark": ""} == {
        "late": "0", "quarantined": "1", "largest jump of the watermark": ""}  # fmt: skip


@pytest.mark.parametrize("share", [0, 50, 95])
def test_combined_rows_give_the_same_answers_and_are_fewer(share):
    raw, packed = figures("hot-key", share=share), figures("hot-key", share=share, combine="before")
    assert raw["answers equal"] == packed["answers equal"] == "yes"
    assert int(packed["rows over the shuffle"]) < int(raw["rows over the shuffle"]) == 360


@pytest.mark.parametrize("kill", ["never", "before", "write", "between", "after"])
@pytest.mark.parametrize("batch", range(1, 7))
def test_what_a_kill_leaves_under_each_delivery(kill, batch):
    """Example 18: exactly once as undisturbed; at least once doubles, and at most once loses, one batch at worst."""
    found = {name: int(value) for name, value in figures("delivery", kill=kill, batch=batch).items()}
    sent = found["sent"]
    worst = int(rows("delivery", 1, kill="never")[3 * (batch - 1)][1].split()[1])
    assert found["exactly once"] == sent
    assert sent <= found["at least once"] <= sent + worst
    assert sent - worst <= found["at most once"] <= sent
    if kill == "between":
        assert (found["at least once"], found["at most once"]) == (sent + worst, sent - worst)


def test_committed_readers_see_four_and_the_others_six():
    """Example 19: a producer commits 3, aborts 2, commits 1."""
    assert figures("log")["different records"] == "4"
    assert figures("log", isolation="read_uncommitted")["different records"] == "6"


def test_an_open_transaction_holds_readers_and_names_its_partition():
    held = figures("log", last="open", others="two")
    assert held["stuck"] == "partition 1"
    handed = " ".join(cells[2] for cells in rows("log", 1, last="open", others="two")).split()
    assert "d1" in handed
    assert "d2" not in handed


def test_pulled_rows_wait_in_the_log_and_pushed_ones_are_lost():
    values = firsts(LESSONS["backpressure"].controls)
    pull, push = pulled(values), pushed(values)
    assert pull.lost == 0
    assert max(pull.log) > 10 * max(push.log)
    assert max(pull.memory) < MEMORY
    assert push.lost > MEMORY
    assert pull.log[-1] < values["rate"] * 1000 * values["target"]


def test_a_forgotten_path_of_lambda_stays_wrong_and_kappa_has_one_program():
    def seconds(name, **values):
        return int(figures("replay", **values)[name].split()[0])

    assert seconds("Kappa is wrong for") < seconds("Lambda is wrong for")
    assert seconds("Lambda is wrong for", fixed="batch") > seconds("Lambda is wrong for")
    assert seconds("Lambda is wrong for", fixed="speed") > seconds("Lambda is wrong for")
    assert seconds("Kappa is wrong for", fixed="batch") == seconds("Kappa is wrong for")


def test_no_corner_of_the_triangle_is_best_in_all_three():
    table = {cells[0]: cells[1:] for cells in rows("triangle", 2)}
    first, on_time, panes = (
        {name: float(cells[n].split()[0]) for name, cells in table.items() if name != "as set"} for n in (0, 2, 4)
    )
    assert min(first, key=first.__getitem__) == "fast"
    assert max(on_time, key=on_time.__getitem__) == "complete"
    assert panes["cheap"] < panes["all corrected"]
    assert first["complete"] > first["cheap"] > first["fast"]


def test_clicks_at_the_edges_of_an_impression():
    """Example 15: 10:03 and 10:05:00 are within five minutes of 10:00; 09:59 and 10:05:01 are not."""
    given = [cells[1:] for cells in rows("joins", 2, story="edges", within=5)]
    assert given == [
        ["ad 1", "10:00:00", "10:03:00"],
        ["ad 1", "10:00:00", "10:05:00"],
        ["ad 2", "10:20:00", "null"],
        ["ad 3", "10:32:00", "10:33:00"],
    ]


def test_an_order_is_paid_at_the_rate_of_its_moment():
    """Example 16: 09:59:59 seen at 10:30 is 108.00, 10:00:00 is 110.00."""
    table = {cells[0]: cells for cells in rows("rates", 2)}
    assert table["09:59:59"][1:5] == ["10:30:00", "10:45:00", "108.00", "110.00, wrong"]
    assert table["10:00:00"][3:5] == ["110.00", "110.00"]
    assert figures("rates")["wrong by their moment"] == "0"
    assert int(figures("rates", announced=30, delay=10)["wrong by their moment"]) > 0


def test_a_corner_reaches_as_far_as_the_best():
    shapes = dict(played("triangle", {})["panels"][1]["shapes"])
    assert [max(shapes, key=lambda name: shapes[name][goal]) for goal in range(3)] == ["fast", "complete", "cheap"]
    assert all(0 <= share <= 1 for shares in shapes.values() for share in shares)
