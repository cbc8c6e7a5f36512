"""The game scores: the same rows whatever the batches, in order of arrival, with the faults that were asked for."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from penstock.connectors.game_scores import Faults, game_scores
from penstock.connectors.source import Undecoded
from penstock.errors import PlanError
from tests.unit.connectors.sources.reading import NOW, batches, between, logged, reader_of, rows_by_offset, shown

SECOND = 1_000_000


def scores(**options):
    given_ = {"realtime": False, "events": 2_000, "rate": 100, **options}
    return game_scores(**given_)


def all_rows(stream, limit=None):
    chunks = [chunk for batch in batches(reader_of(stream), limit) for chunk in batch]
    at = np.concatenate([c.rows.column("at").cast("int64").fill_null(-1).to_numpy() for c in chunks])
    users = [user for c in chunks for user in c.rows.column("user").to_pylist()]
    return chunks, at, users


@settings(deadline=None, max_examples=25)
@given(
    limit=st.integers(1, 3_000),
    partitions=st.integers(1, 4),
    seed=st.integers(0, 2**70),
    silent=st.dictionaries(
        st.integers(0, 0), st.tuples(st.just("3 seconds"), st.sampled_from([None, "5 seconds"])), max_size=1
    ),
)
def test_any_batches_give_the_same_rows(limit, partitions, seed, silent):
    faults = Faults(stragglers=0.1, silent=silent, bad=0.05, hot=0.3)
    stream = scores(events=500, partitions=partitions, seed=seed, faults=faults)
    assert rows_by_offset(stream, max(limit, 10)) == rows_by_offset(stream, None)


@settings(deadline=None, max_examples=50)
@given(
    rate=st.integers(1, 3_000_000),
    partitions=st.integers(1, 5),
    after=st.integers(0, 5_000_000),
    lasting=st.none() | st.integers(1, 5_000_000),
    elapsed=st.integers(0, 20_000_000),
)
def test_a_row_is_made_when_it_arrives(rate, partitions, after, lasting, elapsed):
    from penstock.connectors.game_scores_rows import _arrived

    silent = {0: (f"{after} microseconds", None if lasting is None else f"{lasting} microseconds")}
    game = reader_of(game_scores(rate=rate, partitions=partitions, faults=Faults(silent=silent), realtime=False))
    for partition in range(partitions):
        made = game.made(partition, elapsed)
        around = np.array([row for row in (made - 1, made) if row >= 0], dtype=np.int64)
        arrived = _arrived(game, partition, around).tolist()
        assert made == 0 or arrived[0] < elapsed
        assert arrived[-1] >= elapsed or (partition == 0 and lasting is None and elapsed >= after)


def test_a_seed_gives_the_same_scores_for_ever():
    (chunk,) = reader_of(scores(events=3, partitions=1)).read({"begin": 0, "rows": [[0, 0, 3]]})
    assert shown(chunk)[1] == [0, 1, 2]
    plain = chunk.rows.set_column(3, "at", chunk.rows.column("at").cast("int64"))
    assert [tuple(row.values()) for row in plain.to_pylist()] == GOLDEN
    assert rows_by_offset(scores(seed=8), None) != rows_by_offset(scores(seed=7), None)


GOLDEN = [
    ("user-0718", "jade", 14, -4239758),
    ("user-0073", "azure", 15, -30208546),
    ("user-0243", "ebony", 2, -4675253),
]


def test_event_time_is_arrival_less_a_delay_of_about_the_disorder():
    _, at, _ = all_rows(scores(events=20_000, rate=1_000, partitions=1, disorder="5 seconds"))
    begin = 1_767_225_600 * SECOND
    arrived = begin + np.arange(20_000) * SECOND // 1_000
    delays = arrived - at
    assert (delays >= 0).all()
    assert 4.8 * SECOND < delays.mean() < 5.2 * SECOND
    assert (all_rows(scores(disorder="0", partitions=1))[1] == begin + np.arange(2_000) * SECOND // 100).all()


def test_stragglers_hot_keys_and_bad_rows_come_in_their_shares():
    faults = Faults(stragglers=0.02, straggler_delay="10 minutes", bad=0.04, hot=0.8)
    chunks, at, users = all_rows(scores(events=50_000, faults=faults, partitions=1, rate=10_000))
    torn = sum(len(chunk.undecoded) for chunk in chunks)
    timeless = sum(chunk.rows.column("at").null_count for chunk in chunks)
    assert 0.015 < torn / 50_000 < 0.025
    assert 0.015 < timeless / 50_000 < 0.025
    assert 0.78 < Counter(users).most_common(1)[0][1] / len(users) < 0.82
    good = at[at >= 0]
    straggled = (good < 1_767_225_600 * SECOND - 240 * SECOND).mean()
    assert 0.01 < straggled < 0.03
    assert isinstance(chunks[0].undecoded[0], Undecoded)


def test_users_and_teams_are_as_many_as_asked():
    chunks, _, users = all_rows(scores(keys=20, teams=15, events=5_000))
    assert len(set(users)) == 20
    teams = {
        (u, t) for c in chunks for u, t in zip(*(c.rows.column(n).to_pylist() for n in ("user", "team")), strict=True)
    }
    assert len(teams) == 20
    assert len({team for _, team in teams}) == 15


def test_a_partition_falls_silent_and_comes_back():
    stream = game_scores(rate=10, partitions=2, faults=Faults(silent={1: ("10 seconds", "20 seconds")}), disorder="0")
    reader = reader_of(stream)
    began = reader.latest(reader.start(), NOW, None)
    assert between(reader, reader.start(), began) == []
    at = {s: reader.latest(began, NOW + s * SECOND, None) for s in (10, 20, 29, 31)}
    assert [reader.made(1, at[s]["elapsed"]) for s in (10, 20, 29, 31)] == [50, 50, 50, 55]
    assert reader.behind(at[10], NOW + 20 * SECOND) == ["0"]
    assert reader.behind(at[10], NOW + 31 * SECOND) == ["0", "1"]
    times = [row["at"] for key, row in rows_between(reader, stream, at[10], at[31]) if key == "1"]
    assert times == [NOW + 30 * SECOND + 100_000 + i * 200_000 for i in range(5)]


def rows_between(reader, stream, since, upto):
    from penstock.types.arrow import from_arrow

    return [(c.partition, row) for c in between(reader, since, upto) for row in from_arrow(c.rows, stream.schema)]


def test_a_partition_that_is_silent_for_ever_has_nothing_more():
    reader = reader_of(game_scores(rate=10, faults=Faults(silent={0: ("1 second", None)}), realtime=False))
    at = reader.latest(reader.start(), NOW, 1_000)
    assert reader.made(0, at["elapsed"]) == 5
    assert reader.behind(at, NOW) == ["1"]


def test_real_time_keeps_the_rate_and_replays_the_first_batch_from_its_own_position():
    reader = reader_of(game_scores(rate=1_000, partitions=3))
    first = reader.latest(reader.start(), NOW, None)
    assert first["begin"] == NOW
    upto = reader.latest(first, NOW + 2 * SECOND, None)
    chunks = between(reader, first, upto)
    assert sum(len(c.offsets) for c in chunks) == 2_000
    assert sum(len(c.offsets) for c in between(reader, reader.start(), upto)) == 2_000
    assert reader.latest(upto, NOW - SECOND, None) == upto, "a clock that goes back makes no rows"
    assert reader.latest(first, NOW + 3_600 * SECOND, 500)["elapsed"] == SECOND // 2
    assert reader.behind(upto, NOW + 2 * SECOND) == []
    assert reader.partitions(upto) == ["0", "1", "2"]


def test_events_make_it_end():
    reader = reader_of(scores(events=1_001, partitions=2))
    at = reader.latest(reader.start(), NOW, None)
    assert sum(len(c.offsets) for c in between(reader, reader.start(), at)) == 1_001
    assert reader.finished(at, NOW)
    assert not reader.finished(reader.latest(reader.start(), NOW, 1_000), NOW)
    assert reader.behind(at, NOW) == []
    assert scores().inputs[0].source.bounded
    assert not game_scores().inputs[0].source.bounded


def test_a_batch_is_a_few_large_pieces():
    reader = reader_of(scores(events=2_000_000, rate=1_000_000, partitions=5))
    splits = reader.splits(reader.start(), reader.latest(reader.start(), NOW, None))
    assert [sum(end - first for _, first, end in split["rows"]) for split in splits] == [1_000_000, 1_000_000]
    assert len(reader.splits(reader.start(), reader.latest(reader.start(), NOW, 1_000))) == 1
    assert reader.latest(reader_of(game_scores(realtime=False)).start(), NOW, None)["elapsed"] > 0


def test_a_reader_travels():
    reader = reader_of(scores(faults=Faults(silent={0: ("1 second", None)})))
    assert pickle.loads(pickle.dumps(reader)) == reader
    assert logged(reader.start()) == reader.start()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": 0}, "rate is 0"),
        ({"keys": 1.5}, "keys is 1.5"),
        ({"keys": 10**8}, "keys is 100000000"),
        ({"teams": -1}, "teams is -1"),
        ({"partitions": True}, "partitions is True"),
        ({"events": 0}, "events is 0"),
        ({"seed": "a"}, "seed is 'a'"),
        ({"start": "soon"}, "start is 'soon'"),
        ({"start": 1.5}, "start is 1.5"),
        ({"disorder": "-1 second"}, "negative"),
        ({"disorder": 5}, "not a duration"),
        ({"name": "a/b"}, "cannot be called"),
        ({"faults": Faults(bad=2)}, "bad is 2"),
        ({"faults": Faults(hot="x")}, "hot is 'x'"),
        ({"faults": Faults(stragglers=-0.1)}, "stragglers is -0.1"),
        ({"faults": Faults(silent={9: ("1 s", None)})}, "silent has 9"),
        ({"faults": Faults(silent={0: "1 s"})}, "silent has 0"),
        ({"faults": Faults(silent=[0])}, r"silent has \[0\]"),
        ({"faults": Faults(silent={0: ("1 s", "0")})}, "not longer than nothing"),
    ],
)
def test_a_mistake_is_refused_in_three_parts(options, said):
    with pytest.raises(PlanError, match=said) as error:
        game_scores(**options)
    assert error.value.why
    assert error.value.instead
