"""How smoothly is a large plane drawn? A run of a hundred thousand dots and ten thousand panes, pushed to and fro."""

from __future__ import annotations

from pathlib import Path

from tests.browser.observed import Run

DOTS, PANES, FRAMES = 100_000, 10_000, 75

# Every frame is drawn anew: the plane is moved before each.
MEASURE = """(frames) => new Promise((done) => {
    const { plane } = penstock.app;
    const view = { ...plane.view };
    const times = [];
    const drawn = plane.frames;
    function step(time) {
        times.push(time);
        const counted = plane.drawn.seen.counted.length;
        if (times.length > frames) return done({ times, drawn: plane.frames - drawn, counted });
        const by = Math.sin(times.length / 8) * 0.05;
        plane.shift(by * (view.right - view.left), 0.3 * by * (view.top - view.bottom), view);
        requestAnimationFrame(step);
    }
    requestAnimationFrame(step);
})"""


def large_run(root: Path) -> Run:
    """A run that is as large as a page holds."""
    made = Run(root, teams=tuple(f"team-{number:03d}" for number in range(90)), dots=260)
    made.batches(2).repeated(80)
    return made


def frames_a_second(page) -> float:  # type: ignore[no-untyped-def]
    """Frames a second over 75 of them, all with most of the dots in sight."""
    found = page.evaluate(MEASURE, FRAMES)
    assert found["counted"] > 0.8 * DOTS
    assert found["drawn"] >= FRAMES - 1
    return 1000 * FRAMES / (found["times"][-1] - found["times"][0])
