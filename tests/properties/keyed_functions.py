"""Keyed functions that do what their events say, so that a random stream is a random program."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from penstock.plan.operators.process import KeyedFunction, Timer, items, mapping, value
from penstock.types.schema import schema

COLUMNS = schema("k string, x double, do string, v long")
SECOND = timedelta(seconds=1)


class Told(KeyedFunction):
    """Does what `do` says with `v`, and tells what it then sees."""

    output = "key string, x double, saw string"
    sides = {"told": "key string, x double, at timestamp, v long"}  # noqa: RUF012

    def on_event(self, event: dict[str, Any], key: Any, context: Any) -> None:
        v, do = event["v"], event["do"]
        self.does(do, v, key, context, event["x"])
        context.emit(key=repr(key), x=event["x"], saw=f"{do} {self.seen_now()} {context.time.second}")
        if do == "throw":
            context.timer("3 seconds", "thrown")
            for other in ("put", "push", "list", "stamp", "pop", "drop", "put", "more", "clear", "push", "add", "more"):
                self.does(other, v + 1, key, context, event["x"])
            self.tags.clear()
            self.tags["after"] = v
            raise ValueError(f"as told: {v}")
        self.owner, self.where = event["k"], event["x"]

    def on_timer(self, timer: Timer, key: Any, context: Any) -> None:
        said = f"{timer.kind} {timer.name} {timer.time.timestamp():.0f} {self.seen_now()}"
        context.emit({"key": repr(key), "x": self.where}, saw=said)
        self.count += 100
        if timer.name == "again" and self.count < 1_000:
            context.timer(timer.time + 2 * SECOND, "again", timer.kind)
        elif timer.name == "past":
            context.timer(timer.time - 4 * SECOND, "was past", timer.kind)
        elif timer.name == "other":
            context.timer(context.now, "crossed", "processing")
            context.timer(context.time - SECOND, "crossed")
        elif timer.name == "write":
            self.tags["timer"] = self.count

    def does(self, do: str, v: int, key: Any, context: Any, x: Any) -> None:
        match do.split():
            case ["add"]:
                self.count += v
            case ["clear"]:
                del self.count, self.last
                self.recent.clear()
            case ["stamp"]:
                self.last = context.time
            case ["push"]:
                self.recent.append(v)
            case ["pop"] if self.recent:
                self.recent.pop(0)
            case ["put"]:
                self.tags[f"t{v % 3}"] = v
            case ["drop"]:
                self.tags.pop(f"t{v % 3}", None)
            case ["list"]:
                self.recent = [v, v + 1]
                self.recent[0] = v + 2
            case ["misuse"]:
                self.count, self.recent[:0] = v, ["x"]
            case ["wrong"]:
                self.count = "no number"
            case ["new"]:
                self.other = 5
            case ["side"]:
                context.emit_to("told", key=repr(key), x=self.where, at=context.time, v=v)
            case ["timer", name]:
                context.timer(context.time + (v - 3) * SECOND, name)
            case ["clock", name]:
                context.timer(context.now + (v - 3) * SECOND, name, "processing")
            case ["cancel", name]:
                context.cancel(name=name)
            case ["unclock", name]:
                context.cancel(timedelta(seconds=v - 3), name, "processing")
            case ["more"]:
                self.more(v, context, x)

    def more(self, v: int, context: Any, x: Any) -> None:
        """What only some functions keep."""

    def seen_now(self) -> str:
        return f"{self.count} {self.last} {self.recent} {self.tags} {self.owner}"


class Mixed(Told):
    """Fields of all shapes, lasting for ever or by either clock."""

    count = value("long", default=0)
    last = value("timestamp", ttl="6 seconds")
    owner = value("string")
    where = value("double", ttl="20 seconds", ttl_by="processing")
    recent = items("long", ttl="5 seconds")
    tags = mapping("string", "long", ttl="4 seconds", ttl_by="processing")
    costs = mapping("double", "decimal(10,2)", ttl="9 seconds")
    days = items("date")

    def more(self, v: int, context: Any, x: Any) -> None:
        if x is not None:
            self.costs[x] = Decimal(v) / 4
            self.costs.pop(2.5, None)
        self.days.append(context.time.date())

    def seen_now(self) -> str:
        return f"{super().seen_now()} {self.costs} {self.days} {self.where}"


class Finite(Told):
    """Everything runs out by event time, and timers set no others."""

    count = value("long", default=0, ttl="7 seconds")
    last = value("timestamp", ttl="6 seconds")
    owner = value("string", ttl="1 minute")
    where = value("double", ttl="1 minute")
    recent = items("long", ttl="5 seconds")
    tags = mapping("string", "long", ttl="4 seconds")

    def on_timer(self, timer: Timer, key: Any, context: Any) -> None:
        self.count += 100
        context.emit(key=repr(key), x=self.where, saw=f"{timer.name} {timer.time.timestamp():.0f} {self.seen_now()}")


NAMES = ("", "again", "past", "other", "write")
DEEDS = (
    "add", "clear", "stamp", "push", "pop", "put", "drop", "list", "misuse", "wrong", "new", "side", "throw", "more",
    *(f"timer {name}" for name in NAMES[1:]), *(f"clock {name}" for name in NAMES[1:]), "cancel again", "unclock again",
)  # fmt: skip


def told_rows(deeds: tuple[str, ...] = DEEDS) -> st.SearchStrategy[dict[str, Any]]:
    """Rows of few keys that tell what to do."""
    return st.fixed_dictionaries({
        "k": st.sampled_from(["a", "b", None]), "x": st.sampled_from([0.0, -0.0, float("nan"), None, 2.5]),
        "do": st.sampled_from(deeds), "v": st.integers(0, 8),
    })  # fmt: skip
