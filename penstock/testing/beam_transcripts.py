"""What does a transcript in Apache Beam's form say: its documents, read as cases of ours.

A unit of time is a microsecond, and the value of an element is its time. Windows are written with their last instant.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import CaseError, did_you_mean

Said = Mapping[str, Any]

AT_THE_END = "OUTPUT_AT_EOW"
KEYS = ("name", "error", "window_fn", "trigger_fn", "accumulation_mode", "allowed_lateness", "timestamp_combiner")
LEFT_OUT = ("broken_on", "windowfn")  # which of Beam's runners fail, and a slip that one of its documents has
ACTIONS = ("input", "watermark", "now", "expect", "state")
PANE = ("window", "values", "timestamp", "index", "nonspeculative_index", "early", "late", "final")
PANE_TIME = "pane time: a pane has its window's last instant as event time, and not one made of its elements' times"
WINDOWS = {
    "FixedWindows": ("size", "offset"),
    "CustomTimestampingFixedWindowsWindowFn": ("size", "offset"),
    "SlidingWindows": ("size", "period", "offset"),
    "Sessions": ("gap_size",),
    "GlobalWindows": (),
}
TRIGGERS = {
    "Default": (),
    "DefaultTrigger": (),
    "Always": (),
    "Never": (),
    "AfterWatermark": ("early", "late"),
    "AfterCount": ("count",),
    "AfterProcessingTime": ("delay",),
    "Repeatedly": ("underlying",),
    "AfterAny": None,
    "AfterFirst": None,
    "AfterAll": None,
    "AfterEach": None,
    "OrFinally": None,
}


def transcripts(said: Any) -> list[Said]:
    """The documents of a file that holds transcripts; none if it holds something else."""
    documents = said if isinstance(said, list) else [said]
    found: list[Said] = [one for one in documents if isinstance(one, dict) and "transcript" in one]
    return found if len(found) == len(documents) else []


def case_of(document: Said, where: str) -> dict[str, Any]:
    """The keys of a case, and its steps, that a document stands for."""
    for key in document:
        if key not in (*KEYS, *LEFT_OUT, "transcript"):
            raise _unknown(where, "key", key, KEYS)
    sessions = "Sessions" in str(document.get("window_fn", ""))
    eow = document.get("timestamp_combiner", AT_THE_END) == AT_THE_END
    said: dict[str, Any] = {
        "name": document.get("name", "transcript"),
        "schema": "at long",
        "unit": "us",
        "bounded": True,
        "watermark": "by_hand(max_skew=None)",
        "window": window(str(document.get("window_fn", "GlobalWindows"))),
        "lateness": f"{document.get('allowed_lateness', 0)} us",
        "aggregate": {"values": 'collect("at")'},
        "trigger": trigger(str(document.get("trigger_fn", "Default"))),
        "mode": str(document.get("accumulation_mode", "accumulating")).lower(),
        "step": _steps(document["transcript"], sessions, eow, where),
    }
    said |= {"error": document["error"]} if "error" in document else {}
    return said | ({} if eow else {"deviation": PANE_TIME})


def window(text: str) -> str:
    """Our maker for one of Beam's windows.

    >>> window("SlidingWindows(10, period=5)")
    'sliding("10 us", "5 us", offset="0 us")'
    """
    name, given = _call(_parsed(text), WINDOWS)
    said = {key: f'"{ast.unparse(value)} us"' for key, value in given.items()}
    offset = "offset=" + said.get("offset", '"0 us"')
    match name:
        case "Sessions":
            return f"session({said['gap_size']})"
        case "GlobalWindows":
            return "global_window()"
        case "SlidingWindows":
            return f"sliding({said['size']}, {said['period']}, {offset})"
    return f"tumbling({said['size']}, {offset})"


def trigger(text: str) -> str:
    """Our maker for one of Beam's triggers.

    >>> trigger("AfterWatermark(early=AfterAny(AfterCount(2), AfterProcessingTime(5)))")
    'at_watermark(early=(count(2) | after("5 us")))'
    """
    return _trigger(_parsed(text))


def _trigger(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and TRIGGERS.get(_name(node.func), ()) is None:
        return _composed(_name(node.func), [_trigger(part) for part in node.args])
    name, given = _call(node, TRIGGERS)
    match name:
        case "AfterWatermark":
            parts = {key: part for key, part in given.items() if ast.unparse(part) != "None"}
            return f"at_watermark({', '.join(f'{key}={_trigger(part)}' for key, part in parts.items())})"
        case "AfterCount":
            return f"count({ast.unparse(given['count'])})"
        case "AfterProcessingTime":
            return f'after("{ast.unparse(given["delay"]) if given else 0} us")'
        case "Repeatedly":
            return f"repeat({_trigger(given['underlying'])})"
    return {"Always": "repeat(count(1))", "Never": "never()"}.get(name, "at_watermark()")


def _composed(name: str, parts: Sequence[str]) -> str:
    match name:
        case "AfterAll":
            return f"({' & '.join(parts)})"
        case "AfterEach":
            *before, last = parts
            return "".join(f"({part}).then(" for part in before) + last + ")" * len(before)
        case "OrFinally":
            first, second = parts
            return f"({first}).until({second})"
    return f"({' | '.join(parts)})"


def _steps(transcript: Sequence[Said], sessions: bool, eow: bool, where: str) -> list[dict[str, Any]]:
    """A step for each thing that is done; what is expected belongs to the one before it."""
    steps: list[dict[str, Any]] = []
    for action, said in (item for step in transcript for item in step.items()):
        if action == "input":
            steps.append({"rows": [{"at": at} for at in said], "late": "any"})
        elif action in ("watermark", "now"):
            steps.append({action: said})
        elif action == "expect":
            steps = steps or [{}]
            steps[-1]["panes"] = [*steps[-1].get("panes", []), *(_pane(one, sessions, eow, where) for one in said)]
        elif action not in ACTIONS:
            raise _unknown(where, "step", action, ACTIONS)
    return steps


def _pane(said: Said, sessions: bool, eow: bool, where: str) -> dict[str, Any]:
    for key in said:
        if key not in PANE:
            raise _unknown(where, "fact of a pane", key, PANE)
    pane = {key: said[key] for key in ("index", "early", "late", "final") if key in said}
    if "window" in said:
        pane["window"] = said["window"] if said["window"] == "global" else [said["window"][0], said["window"][1] + 1]
    if "values" in said:
        pane["values"] = sorted(said["values"])
    if "nonspeculative_index" in said:
        pane["nsi"] = said["nonspeculative_index"]
    if "timestamp" in said and eow:
        pane["event_time"] = said["timestamp"] + sessions  # a session of ours holds its end
    return pane


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise CaseError(
            f"{text!r} cannot be read",
            "windows and triggers are written as calls",
            "write it as FixedWindows(10) or AfterCount(2)",
        ) from None


def _call(node: ast.expr, known: Mapping[str, Sequence[str] | None]) -> tuple[str, dict[str, ast.expr]]:
    """What is called, and its arguments by name; empty parentheses may be left out."""
    name = _name(node.func if isinstance(node, ast.Call) else node)
    names = known.get(name)
    if names is None:
        raise CaseError(
            f"there is no {name or ast.unparse(node)!r} here",
            "it stands in a window_fn or a trigger_fn",
            did_you_mean(name, known),
        )
    given = node.args if isinstance(node, ast.Call) else []
    named = {str(one.arg): one.value for one in node.keywords} if isinstance(node, ast.Call) else {}
    if len(given) > len(names) or not set(named) <= set(names):
        raise CaseError(
            f"{ast.unparse(node)!r} has arguments that {name} has not",
            f"it takes: {', '.join(names) or 'none'}",
            "leave the others out",
        )
    return name, dict(zip(names, given, strict=False)) | named


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "").lstrip("_")


def _unknown(where: str, what: str, found: object, known: Sequence[str]) -> CaseError:
    return CaseError(
        f"{where}: there is no {what} {found!r}",
        f"a transcript has: {', '.join(known)}",
        did_you_mean(str(found), known),
    )
