"""Is the run at work, and is it seen? One that died, failed or stands still, batches unseen, batches run again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.humanize import many, span
from penstock.observability.health.concern import NOTE, URGENT, WARNING, Concern
from penstock.observability.health.run_state import Situation
from penstock.observability.observation import Observation

STALL_SECONDS = 60.0  # without a batch, at least, before a run that lives is said to stand still
STALL_BATCHES = 3  # and so many times as long as a batch should take with the pause before it
UNSEEN_SECONDS = 90.0  # that what was observed may be behind the checkpoint: where files cannot grow it is written late


def run(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """A run that has failed, died or was stopped."""
    if not now.ended or now.finished:
        return
    where = "before its first batch" if now.batch is None else f"after batch {now.batch:,}"
    since = f", {span((now.at - observed[-1].wall) * 1e6)} ago" if observed else ""
    again = "run it again: it goes on from there, and nothing is written twice"
    if now.failure is not None:
        yield Concern(
            URGENT,
            "run",
            f"the run failed {where}{since}: {now.failure.what}",
            now.failure.why,
            now.failure.instead,
        )
    elif now.stopped:
        yield Concern(
            NOTE,
            "run",
            f"the run was stopped {where}{since}",
            "somebody asked for it, or its input was drained; what is shown is how it stood",
            "start it again with the same command: it goes on from there",
        )
    elif now.alive is False:
        yield Concern(
            URGENT,
            "run",
            f"the run died {where}{since}",
            f"{now.who} is gone and did not say that it stopped: it was killed, or the machine went down",
            again,
        )


def stall(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """A run that may live, and has ended no batch for long."""
    if now.ended:
        return
    if now.waiting is not None:
        waited = span(now.at * 1e6 - now.waiting.since)
        yield Concern(
            URGENT,
            "sink",
            f"batch {now.waiting.batch:,} has waited for a sink for {waited}",
            now.waiting.what,
            "bring the sink back: the run tries again by itself, nothing is lost meanwhile and the lag grows",
        )
        return
    if not observed:
        return
    last = observed[-1]
    silent = now.at - last.wall
    usual = (last.settings.get("batch_every", 0) + last.settings.get("batch_target", 0)) / 1e6
    if silent <= max(STALL_SECONDS, STALL_BATCHES * usual, STALL_BATCHES * last.elapsed):
        return
    seen = (
        f"{now.who} is alive; a batch takes very long, or Spark waits for something"
        if now.alive
        else f"whether {now.who} is alive cannot be seen from here"
    )
    yield Concern(
        URGENT,
        "stall",
        f"no batch has ended for {span(silent * 1e6)}",
        seen,
        "look at what Spark does (its own page names the task that runs), and at the machine's memory and disk",
    )


def unobserved(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """Batches that ran and could not be written down, or of which nobody knows more than their clock."""
    missed = sum(one.missed for one in observed)
    if missed:
        yield Concern(
            WARNING,
            "observing",
            f"{many(missed, 'batch', 'batches')} could not be written down",
            "the folder penstock/monitor of the checkpoint could not be written; the run itself went on",
            "free space there or give the right to write; what is shown has a gap",
        )
    if (
        not observed
        or now.batch is None
        or now.batch <= observed[-1].batch
        or now.at - observed[-1].wall < UNSEEN_SECONDS
    ):
        return
    gap = now.batch - observed[-1].batch
    yield Concern(
        WARNING,
        "observing",
        f"the last {many(gap, 'batch', 'batches')} of the run cannot be seen",
        f"the checkpoint is at batch {now.batch:,} and what was observed ends with {observed[-1].batch:,}: "
        "it runs with observe=False, or penstock/monitor cannot be written",
        "run it with observe=True, which is the default; free space beside the checkpoint",
    )


def replays(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """Batches that were run again, and sinks that are not where the checkpoint is."""
    again = [one for one in observed if one.replayed]
    if again:
        last = again[-1]
        had = sorted(name for name, held in last.ledgers.items() if held.get("had"))
        told = f"{', '.join(had)} had it already and was not given it again" if had else "no sink had it yet"
        times = f" ({many(len(again), 'time')} in ten minutes)" if len(again) > 1 else ""
        yield Concern(
            NOTE if len(again) == 1 else WARNING,
            "replay",
            f"batch {last.batch:,} was run again{times}",
            f"the run had ended in the middle of it; {told}",
            "nothing is to be done, unless runs end often: then see why they do",
        )
    for name, held in observed[-1].ledgers.items() if observed else ():
        given = observed[-1].sinks.get(name)
        if given is not None and held.get("batch") is not None and held["batch"] != given:
            yield Concern(
                URGENT,
                "sink",
                f"the ledger of {name} is at batch {held['batch']:,}, and the checkpoint gave it batch {given:,}",
                "the sink was emptied or restored from a backup, or somebody else writes to it",
                "stop the run and compare the two before anything more is written",
            )
