"""What has been read: nothing twice, nothing lost, in a position that does not grow."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from penstock.connectors.files.seen_files import MARGIN, Seen, decoded
from penstock.errors import DataError
from penstock.storage.listing import File

HOUR = 3_600 * 10**9


def files(*numbers, came=None):
    return [File(f"f{n:06d}", 1, n * HOUR, n * HOUR if came is None else came) for n in numbers]


def read(seen, there, most=None):
    """The names that a look finds unread, and what is remembered when the first of them have been read."""
    unread = seen.unread(there, "d")
    late = [f for f in unread if seen.newest is not None and f.key <= seen.newest]
    batch = [*late, *[f for f in unread if f not in late][:most]]
    after = decoded(json.loads(json.dumps(seen.after(there, unread, batch).encoded())))
    assert after == seen.after(there, unread, batch)
    return {f.name for f in batch}, after


def drained(there, seen=None, most=100):
    seen = Seen() if seen is None else seen
    while True:
        names, seen = read(seen, there, most)
        if not names:
            return seen


def test_a_position_does_not_grow():
    seen = drained(files(*range(5_000)))
    assert len(json.dumps(seen.encoded())) < 7_500
    assert seen.unread(files(*range(5_000)), "d") == []


def test_two_files_of_one_time_are_both_read():
    there = [File(name, 1, HOUR, HOUR) for name in ("b", "a", "c")]
    names, seen = read(Seen(), there, 2)
    assert names == {"a", "b"}
    assert read(seen, there)[0] == {"c"}


def test_a_file_that_comes_late_is_read_although_it_is_older():
    there = files(*range(0, 4_000, 2))
    seen = drained(there)
    late = files(1, 501, 777, came=seen.looked + 1)
    assert read(seen, [*there, *late])[0] == {f.name for f in late}
    assert drained([*there, *late], seen).unread([*there, *late], "d") == []


def test_many_old_files_that_come_at_once_are_read():
    there = files(*range(0, 4_000, 2))
    seen = drained(there)
    late = files(*range(1, 2_001, 2), came=seen.looked + 1)
    assert len(read(seen, [*there, *late])[0]) == 1_000


def test_a_late_file_whose_listing_lagged_is_found_by_the_sum_alone():
    there = files(*range(3_000))
    seen = drained(there)
    late = [File("zzz", 1, 5, 5)]
    assert read(seen, [*there, *late])[0] == {"zzz"}


def test_files_that_were_read_may_be_removed_and_their_rights_changed():
    there = files(*range(3_000))
    seen = drained(there)
    assert seen.unread(there[1_500:], "d") == []
    assert read(seen, there[1_500:])[1].older != seen.older, "what was removed is forgotten"
    touched = [File(f.name, f.size, f.written, seen.looked + HOUR) for f in there]
    assert seen.unread(touched, "d") == []
    fresh = files(5_000)
    names, seen = read(seen, [*there[1_500:], *fresh])
    assert names == {"f005000"}
    late = files(1, came=seen.looked + 1)
    assert read(seen, [*there[1_500:], *fresh, *late])[0] == {"f000001"}, "the sums are those of what was left"


def test_old_files_that_come_while_others_go_stop_it():
    there = files(*range(3_000))
    seen = drained(there)
    late = [File(f"old{i}", 1, 5, seen.looked + 1) for i in range(3)]
    with pytest.raises(DataError, match="nobody can tell whether these files have been read: old") as error:
        seen.unread([*there[1_500:], *late], "d")
    assert "touch those that are new" in error.value.instead


def test_a_file_that_was_changed_stops_it():
    there = files(1, 2, 3)
    seen = drained(there)
    grown = [*there[:2], File("f000003", 2, 9 * HOUR, 9 * HOUR)]
    with pytest.raises(DataError, match="d/f000003 was changed after it had been listed"):
        seen.unread(grown, "d")


def test_nothing_new_changes_nothing_but_the_last_look():
    there = files(1, 2)
    seen = drained(there)
    assert seen.after(there, [], []) == seen
    assert Seen().after([], [], []) == Seen()
    assert MARGIN > 0


@settings(deadline=None, max_examples=150)
@given(data=st.data(), remembered=st.sampled_from([1, 4, 512]))
def test_whatever_comes_and_whenever_each_file_is_read_once(data, remembered):
    """Files come with any time; what goes went long after the youngest came; every file is read once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("penstock.connectors.files.seen_files.REMEMBERED", remembered)
        clock, there, seen, ever = 0, [], Seen(), set()
        for look in range(data.draw(st.integers(1, 8))):
            clock += 10 * MARGIN
            if data.draw(st.booleans()):
                there = [*there, File(f"{look}-young", 1, 21 * HOUR + look, clock)]
                names, seen = read(seen, there)
                assert not names & ever
                ever |= names
                gone = {f.name for f in there if f.came < clock and f.name in ever and data.draw(st.booleans())}
                there = [f for f in there if f.name not in gone]
            else:
                times = data.draw(st.lists(st.integers(0, 20), max_size=30))
                there += [File(f"{look}-{i}", 1, t * HOUR, clock) for i, t in enumerate(times)]
            names, seen = read(seen, there, data.draw(st.integers(1, 10)))
            assert not names & ever
            ever |= names
        while names:
            names, seen = read(seen, there, 5)
            assert not names & ever
            ever |= names
        assert {f.name for f in there} <= ever
