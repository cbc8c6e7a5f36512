"""Who may write here: the one decision about lineage and epoch that every ledger takes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from penstock.connectors.sink import Ledger
from penstock.connectors.sink_errors import exchanged, fenced, foreign, unledgered


@dataclass(frozen=True, slots=True)
class Claim:
    """Someone who wants to write to a place."""

    place: str
    sink: str
    lineage: str
    epoch: int
    takeover: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """What a place tells of its owners: the one of now, lineages that were taken over, rows without an owner."""

    now: Ledger | None = None
    retired: Collection[str] = ()
    orphans: bool = False


def claimed(claim: Claim, held: Held) -> Ledger:
    """The ledger with which the claimant goes on; raises where it may not."""
    if claim.lineage in held.retired:
        raise fenced(claim.place, claim.epoch, f"its lineage {claim.lineage} was taken over by another")
    fresh = Ledger(claim.sink, claim.lineage, -1, claim.epoch, 0, "")
    if held.now is None:
        if held.orphans and not claim.takeover:
            raise unledgered(claim.place)
        return fresh
    if (held.now.sink, held.now.lineage) != (claim.sink, claim.lineage):
        refuse_exchanged(claim, held.now)
        if not claim.takeover:
            raise foreign(claim.place, held.now, claim.sink, claim.lineage)
        return fresh
    if held.now.epoch > claim.epoch:
        raise fenced(claim.place, claim.epoch, f"epoch {held.now.epoch} has begun")
    return replace(held.now, epoch=claim.epoch)


def refuse_exchanged(claim: Claim, found: Ledger) -> None:
    """Refuse a place to which another output of the same run wrote: no takeover makes its rows those of this one."""
    if found.lineage == claim.lineage and stream_of(found.sink) != stream_of(claim.sink):
        raise exchanged(claim.place, found.sink, claim.sink)


def stream_of(sink: str) -> str:
    """Which rows a sink is given, by its id, in which the pipeline comes before and where they go after."""
    return sink.split("/")[1] if sink.count("/") > 1 else sink


def committed(ledger: Ledger) -> Ledger | None:
    """What was committed last, if anything was."""
    return ledger if ledger.batch >= 0 else None
