"""A shard's state knows its size, also where an older version has written it."""

from __future__ import annotations

from penstock.engine.state.codec import framed
from penstock.engine.state.snapshot import Saved
from penstock.spark.state_layout import PIECE, Kept, kept_after, read_kept, written_kept


def test_a_state_knows_its_bytes_and_its_largest_part():
    large = b"x" * (PIECE + 5)
    first = kept_after(Kept(b"", {}, {}), Saved(b"head", {"a": b"12", "b": large}), ["a", "b"])
    assert first.measured() == {"bytes": 4 + 2 + len(large), "largest": len(large)}
    assert first.pieces == {"b": 2}
    again = read_kept(written_kept(first))
    assert again == first
    later = kept_after(again, Saved(b"h", {"c": b"123"}), ["b", "c"])
    assert later.measured() == {"bytes": 1 + 3 + len(large), "largest": len(large)}
    assert kept_after(later, Saved(b"h", {}), ["c"]).measured() == {"bytes": 4, "largest": 3}


def test_of_an_older_state_the_size_is_at_most_that_of_its_pieces():
    old = read_kept(framed({"head": 1, "pieces": {"b": 2}, "small": {"a": 2}}, [b"h", b"12"]))
    assert old.measured() == {"bytes": 3 + 2 * PIECE, "largest": 2 * PIECE}
