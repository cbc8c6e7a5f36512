// The plane: event time across, processing time up; dots, the watermark's line, windows, and panes where they came.

import { clock, svg } from "./making.js";

const SECOND = 1_000_000;
const TICKS = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map((s) => s * SECOND);
const EDGE = { left: 58, right: 14, top: 14, bottom: 36 };
const BAR = 15;
const SIGN = { early: "…", on_time: "✓", late: "+" };
const WORD = { early: "early", on_time: "on time", late: "late" };

const finite = (time) => typeof time === "number";

function scaled(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

function ticks(low, high, most) {
  const step = TICKS.find((one) => (high - low) / one <= most) ?? 86400 * SECOND;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

// What must fit: all steps, so that nothing jumps while it plays.
function domain(panel, steps) {
  const plane = panel.plane;
  const nows = steps.map((step) => step.now).filter(finite);
  const dots = plane.dots.filter((dot) => dot.fate !== "quarantined" && finite(dot.event_time));
  const times = dots.map((dot) => dot.event_time);
  if (panel.across === "event") times.push(...panel.windows.flat());
  nows.push(...plane.dots.map((dot) => dot.now), ...plane.marks.map((mark) => mark.now));
  const across = panel.frame ?? [Math.min(...times), Math.max(...times)];
  const margin = (across[1] - across[0]) * 0.03 || 60 * SECOND;
  const up = [Math.min(...nows), Math.max(...nows)];
  const head = (up[1] - up[0]) * 0.09 || 60 * SECOND;
  return { across: [across[0] - margin, across[1] + margin], up: [up[0] - head, up[1] + head] };
}

function axes(box, x, y, range) {
  const group = svg("g", { class: "axes" });
  for (const at of ticks(...range.across, (box.right - box.left) / 74)) {
    group.append(svg("line", { x1: x(at), x2: x(at), y1: box.top, y2: box.bottom }));
    group.append(svg("text", { x: x(at), y: box.bottom + 15, "text-anchor": "middle" }, clock(at)));
  }
  for (const at of ticks(...range.up, (box.bottom - box.top) / 34)) {
    group.append(svg("line", { x1: box.left, x2: box.right, y1: y(at), y2: y(at) }));
    group.append(svg("text", { x: box.left - 5, y: y(at) + 4, "text-anchor": "end" }, clock(at)));
  }
  const under = { x: box.right, y: box.bottom + 31, "text-anchor": "end" };
  group.append(svg("text", { class: "name", ...under }, "event time →"));
  group.append(svg("text", { class: "name", x: 2, y: box.top - 2 }, "↑ seen"));
  const low = Math.max(range.across[0], range.up[0]);
  const high = Math.min(range.across[1], range.up[1]);
  if (low < high) {
    group.append(svg("line", { class: "ideal", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }));
  }
  return group;
}

function columns(panel, box, x, y) {
  const group = svg("g", { class: "windows" });
  panel.windows.forEach(([start, end], number) => {
    const side = number % 2 ? "odd" : "even";
    if (panel.across === "processing") {
      const top = Math.max(y(end), box.top);
      const height = Math.max(Math.min(y(start), box.bottom) - top, 0);
      group.append(svg("rect", { class: side, x: box.left, width: box.right - box.left, y: top, height }));
    } else {
      const left = Math.max(x(start), box.left);
      const width = Math.max(Math.min(x(end), box.right) - left, 0);
      group.append(svg("rect", { class: side, x: left, width, y: box.top, height: box.bottom - box.top }));
    }
  });
  return group;
}

function watermark(plane, now, box, x, y) {
  const marks = plane.marks.filter((mark) => mark.now <= now);
  const across = (time) => {
    if (time === "-inf") return box.left;
    return time === "+inf" ? box.right : Math.min(Math.max(x(time), box.left), box.right);
  };
  let path = "";
  marks.forEach((mark, number) => {
    const at = `${across(mark.watermark).toFixed(1)}`;
    path += number === 0 ? `M${at} ${y(mark.now).toFixed(1)}` : `H${at}V${y(mark.now).toFixed(1)}`;
  });
  const group = svg("g", { class: "watermark" }, svg("path", { d: path }));
  const last = marks[marks.length - 1];
  if (last && finite(last.watermark)) {
    const at = across(last.watermark);
    const flip = at > box.right - 50;
    const anchor = flip ? "end" : "start";
    group.append(svg("text", { x: at + (flip ? -6 : 6), y: y(last.now) - 3, "text-anchor": anchor }, "W"));
  }
  return group;
}

function dotShape(dot, at, up, shape) {
  const text = [`${dot.key} ${dot.text}`, `happened ${clock(dot.event_time, true)}`, `seen ${clock(dot.now, true)}`];
  if (dot.why) text.push(`${dot.fate}: ${dot.why}`);
  const group = svg("g", { class: `dot ${dot.fate} shape${shape}` }, svg("title", {}, text.join(", ")));
  const r = 4.5;
  if (dot.fate === "late") {
    const cross = `M${at - r} ${up - r}L${at + r} ${up + r}M${at - r} ${up + r}L${at + r} ${up - r}`;
    group.append(svg("path", { d: cross }));
  } else if (dot.fate === "quarantined") {
    group.append(svg("rect", { x: at - 5, y: up - 5, width: 10, height: 10 }));
    group.append(svg("text", { x: at, y: up + 4, "text-anchor": "middle" }, "!"));
  } else if (shape === 1) {
    group.append(svg("path", { d: `M${at} ${up - 6}L${at + 6} ${up}L${at} ${up + 6}L${at - 6} ${up}Z` }));
  } else if (shape === 2) {
    group.append(svg("path", { d: `M${at} ${up - 6}L${at + 6} ${up + 5}L${at - 6} ${up + 5}Z` }));
  } else {
    group.append(svg("circle", { cx: at, cy: up, r }));
  }
  return group;
}

function dots(panel, now, box, x, y) {
  const group = svg("g", { class: "dots" });
  const places = [...new Set(panel.plane.dots.map((dot) => dot.partition))].sort();
  const seen = panel.plane.dots.filter((dot) => dot.now <= now && finite(dot.event_time));
  const labelled = panel.plane.dots.length <= 30 && panel.across === "event";
  for (const dot of seen) {
    const beyond = dot.event_time > panel.range.across[1];
    const at = beyond ? box.right - 8 : Math.max(x(dot.event_time), box.left);
    group.append(dotShape(dot, at, y(dot.now), places.indexOf(dot.partition) % 3));
    if (beyond) {
      const far = `${clock(dot.event_time)} →`;
      group.append(svg("text", { class: "points", x: at - 4, y: y(dot.now) - 8, "text-anchor": "end" }, far));
    } else if (labelled) {
      group.append(svg("text", { class: "points", x: at + 6, y: y(dot.now) + 10 }, dot.text));
    }
  }
  return group;
}

// Each pane has a thin line at its true moment and a bar that stands on it. Bars that would cover one another are
// stacked, a little; where there is no room near its moment a pane keeps its line alone.
const guess = (one) => Number(one.timing === "early" && one.op > 0);

function free(rect, taken, tries) {
  for (let left = tries; left > 0; left -= 1) {
    const beside = (o) => rect.x >= o.x + o.w || o.x >= rect.x + rect.w || Math.abs(rect.y - o.y) >= BAR;
    const hit = !taken.every(beside);
    if (!hit && rect.y >= 0) {
      taken.push(rect);
      return true;
    }
    rect.y -= BAR + 1;
  }
  return false;
}

function pane(panel, one, box, x, y, taken) {
  const bands = panel.across === "processing";
  const left = bands ? box.right + 2 : finite(one.start) ? Math.max(x(one.start), box.left) : box.left;
  const right = bands ? box.right + 84 : finite(one.end) ? Math.min(x(one.end), box.right) : box.right;
  const at = bands ? Math.max(y(one.end), box.top) : y(one.now);
  const rect = { x: left + 1, y: Math.max(at - (bands ? -1 : BAR), 0), w: Math.max(right - left - 2, 6) };
  const room = free(rect, taken, guess(one) ? 2 : 6);
  const text = (one.op < 0 ? "−" : "") + one.text;
  const word = `${text} ${WORD[one.timing]}`;
  const brief = rect.w > text.length * 7 + 14 ? `${text} ${SIGN[one.timing]}` : text;
  const label = rect.w > word.length * 6.4 + 6 ? word : brief;
  const kind = one.op < 0 ? "withdrawn" : WORD[one.timing];
  const told = [kind, `${one.key} ${one.text}`, `pane ${one.index}`, `at ${clock(one.now, true)}`].join(", ");
  const group = svg("g", { class: `pane ${one.timing}${one.op < 0 ? " withdrawn" : ""}` }, svg("title", {}, told));
  if (!bands) group.append(svg("line", { x1: left + 1, x2: right - 1, y1: at, y2: at }));
  if (room) group.append(svg("rect", { x: rect.x, y: rect.y, width: rect.w, height: BAR, rx: 2 }));
  if (room && rect.w > text.length * 6) {
    group.append(svg("text", { x: rect.x + rect.w / 2, y: rect.y + BAR - 4, "text-anchor": "middle" }, label));
  }
  return group;
}

function panes(panel, now, box, x, y) {
  const group = svg("g", { class: "panes" });
  const taken = [];
  const shown = panel.plane.panes.filter((one) => one.now <= now).sort((a, b) => guess(a) - guess(b));
  group.append(...shown.map((one) => pane(panel, one, box, x, y, taken)));
  return group;
}

// Draws a plane as it stood at a moment into a picture of this width.
export function drawPlane(panel, steps, step, width) {
  const height = Math.round(Math.min(Math.max(width * 0.72, 290), 430));
  const aside = panel.across === "processing" ? 84 : 0;
  const box = { left: EDGE.left, right: width - EDGE.right - aside, top: EDGE.top, bottom: height - EDGE.bottom };
  panel.range = domain(panel, steps);
  const x = scaled(...panel.range.across, box.left, box.right);
  const y = scaled(...panel.range.up, box.bottom, box.top);
  const now = steps[step].now ?? Infinity;
  const shown = panel.plane.panes.filter((one) => one.now <= now).length;
  const seen = panel.plane.dots.filter((one) => one.now <= now).length;
  const about = `${panel.title}: ${seen} events seen, ${shown} panes shown`;
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  const picture = svg("svg", { ...size, class: "plane", role: "img", "aria-label": about });
  picture.dataset.perPixel = (panel.range.across[1] - panel.range.across[0]) / (box.right - box.left);
  picture.append(columns(panel, box, x, y), axes(box, x, y, panel.range));
  picture.append(panes(panel, now, box, x, y));
  if (panel.across === "event") picture.append(watermark(panel.plane, now, box, x, y));
  picture.append(dots(panel, now, box, x, y));
  return picture;
}
