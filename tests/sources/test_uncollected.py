"""Python's collector of cycles rests while a chunk is made, and is as it was whenever somebody else has the turn."""

from __future__ import annotations

import gc

import pytest

from penstock.sources.reading.uncollected import uncollected


@pytest.fixture(autouse=True)
def collecting():
    gc.enable()
    yield
    gc.enable()


def looking(seen, count=3, wrong=None):
    try:
        for at in range(count):
            seen.append(gc.isenabled())
            if at == wrong:
                raise ValueError(at)
            yield at
    finally:
        seen.append("closed")


def test_it_rests_while_a_chunk_is_made_and_works_while_one_is_used():
    seen = []
    assert [(one, gc.isenabled()) for one in uncollected(looking(seen))] == [(0, True), (1, True), (2, True)]
    assert seen == [False, False, False, "closed"]
    assert gc.isenabled()


def test_it_works_again_after_an_error_and_after_a_reader_that_goes_away():
    seen = []
    with pytest.raises(ValueError, match="1"):
        list(uncollected(looking(seen, wrong=1)))
    assert gc.isenabled()
    half = uncollected(looking(seen))
    next(half)
    half.close()
    assert gc.isenabled()
    assert seen == [False, False, "closed", False, "closed"]


def test_one_who_has_switched_it_off_is_left_alone():
    gc.disable()
    assert list(uncollected(looking([]))) == [0, 1, 2]
    assert not gc.isenabled()
