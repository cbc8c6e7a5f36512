"""How does it look, in light and in dark: plain classes and colours, which every reader of SVG understands."""

from __future__ import annotations

from typing import Literal

Scheme = Literal["auto", "light", "dark"]
FONT = "system-ui, 'DejaVu Sans', Verdana, Arial, sans-serif"
SIZE, SMALL = 13.0, 12.0
# How much wider a value is for being bold.
BOLD = 1.1

_LIGHT = {
    "ground": "#ffffff",
    "ink": "#1f2328",
    "faint": "#59636e",
    "grid": "#d9dee3",
    "line": "#1a7f37",
    "dot": "#0550ae",
    "late-event": "#a1300c",
    "bad": "#6f3bb5",
    "early": "#0b6bb8",
    "on_time": "#7a5200",
    "late": "#a1300c",
    "gone": "#59636e",
    "column": "#eef1f4",
    "chip": "#ffffff",
}
_DARK = {
    "ground": "#0d1117",
    "ink": "#e6edf3",
    "faint": "#9aa4ae",
    "grid": "#2b323b",
    "line": "#3fb950",
    "dot": "#79b8ff",
    "late-event": "#ff9d76",
    "bad": "#c8a2ff",
    "early": "#6cb6ff",
    "on_time": "#e3b341",
    "late": "#ff9d76",
    "gone": "#9aa4ae",
    "column": "#161c24",
    "chip": "#0d1117",
}

_SHAPES = f"""text {{ font-family: {FONT}; font-size: {SMALL:g}px }}
.name {{ font-size: {SIZE + 2:g}px; font-weight: 600 }}
.axis {{ font-size: {SIZE:g}px }}
.value {{ font-weight: 600 }}
.middle {{ text-anchor: middle }}
.end {{ text-anchor: end }}
.frame {{ fill: none; stroke-width: 1 }}
.grid {{ stroke-width: 1 }}
.ideal {{ stroke-width: 1.5; stroke-dasharray: 2 5; fill: none }}
.watermark {{ stroke-width: 4; fill: none; stroke-linejoin: round; stroke-linecap: round }}
.dot {{ stroke-width: 2 }}
.cross {{ stroke-width: 2.5; fill: none }}
.diamond {{ stroke-width: 2 }}
.dot.small {{ stroke-width: 0.5 }}
.cross.small, .diamond.small {{ stroke-width: 1.2 }}
.top {{ stroke-width: 2.5; fill: none }}
.leader {{ stroke-width: 1; fill: none }}
.chip {{ stroke-width: 1.5 }}
.early .top, .early .chip {{ stroke-dasharray: 5 3 }}
.late .top, .late .chip {{ stroke-width: 2.5 }}
.gone .top, .gone .chip {{ stroke-dasharray: 1.5 3; stroke-width: 1.5 }}
.gone text {{ text-decoration: line-through }}
.body {{ fill-opacity: 0.13; stroke: none }}
.light {{ fill-opacity: 0.08; stroke-width: 1; stroke-opacity: 0.5 }}
.hatch {{ stroke-width: 1; stroke-opacity: 0.4; fill: none }}
.bracket {{ stroke-width: 1.5; fill: none }}
"""


def style(scheme: Scheme) -> str:
    """The sheet; "auto" follows what the reader has chosen."""
    first = _colours(_DARK if scheme == "dark" else _LIGHT)
    other = f"@media (prefers-color-scheme: dark) {{\n{_colours(_DARK)}}}\n" if scheme == "auto" else ""
    return _SHAPES + first + other


def _colours(of: dict[str, str]) -> str:
    rules = [
        f".ground {{ fill: {of['ground']} }}",
        f"text {{ fill: {of['ink']} }}",
        f".faint {{ fill: {of['faint']} }}",
        f".grid, .frame {{ stroke: {of['grid']} }}",
        f".column {{ fill: {of['column']} }}",
        f".ideal, .bracket, .leader {{ stroke: {of['faint']} }}",
        f".watermark {{ stroke: {of['line']} }}",
        f".dot {{ fill: {of['dot']}; stroke: {of['ground']} }}",
        f".cross {{ stroke: {of['late-event']} }}",
        f".diamond {{ stroke: {of['bad']}; fill: {of['ground']} }}",
        f".chip {{ fill: {of['chip']} }}",
    ]
    for kind in ("early", "on_time", "late", "gone"):
        rules.append(f".{kind} .top, .{kind} .chip, .{kind} .hatch {{ stroke: {of[kind]} }}")
        rules.append(f".{kind} .body {{ fill: {of[kind]} }}")
        rules.append(f".{kind} .light {{ stroke: {of[kind]} }}")
    rules.append(f".on_time .chip {{ fill: {of['on_time']} }}")
    rules.append(f".on_time text {{ fill: {of['ground']} }}")
    return "\n".join(rules) + "\n"
