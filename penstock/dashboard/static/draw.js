// The plane on a canvas: event time across, processing time up; dots, the watermark's line, windows as columns, and
// panes where they were emitted. Whatever there is of it, a frame costs about the same: many dots are pixels.

import { dotsOf, inSight } from "./dots.js";
import { GONE, TIMINGS } from "./held.js";
import { SIGN, tick } from "./making.js";

export const EDGE = { left: 70, right: 16, top: 30, bottom: 40 };
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400].map((s) => s * 1e6);
const BAR = 15;

export function colours(element) {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(name).trim();
  return { ink: of("--ink"), soft: of("--soft"), rule: of("--rule"), box: of("--box"), column: of("--column"),
    dot: of("--dot"), late: of("--late"), bad: of("--bad"), mark: of("--mark"), early: of("--early"),
    on_time: of("--on-time"), latePane: of("--late-pane"), onPane: of("--on-pane") };
}

export function scales(view, box) {
  const across = (box.right - box.left) / (view.right - view.left || 1);
  const up = (box.bottom - box.top) / (view.top - view.bottom || 1);
  return { x: (time) => box.left + (time - view.left) * across, y: (now) => box.bottom - (now - view.bottom) * up,
    time: (x) => view.left + (x - box.left) / across, now: (y) => view.bottom + (box.bottom - y) / up };
}

function ticks(low, high, most) {
  let step = STEPS.find((one) => (high - low) / one <= most);
  if (step === undefined) step = 86_400e6 * Math.ceil((high - low) / 86_400e6 / most);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return { found, step };
}

// Panes of one window, moment and kind are drawn once, whatever the number of their keys.
export function grouped(panes, stage, key) {
  const found = new Map();
  for (let at = 0; at < panes.count; at += 1) {
    if (panes.timing[at] === GONE || panes.stage[at] !== stage || (key !== null && panes.key[at] !== key)) continue;
    const name = `${panes.start[at]} ${panes.end[at]} ${panes.now[at]} ${panes.timing[at]} ${panes.op[at]}`;
    const held = found.get(name);
    if (held === undefined) {
      found.set(name, { start: panes.start[at], end: panes.end[at], now: panes.now[at], kind: panes.timing[at],
        op: panes.op[at], count: 1, text: panes.text[at], key: panes.key[at], at });
    } else held.count += 1;
  }
  return [...found.values()].sort((a, b) => a.now - b.now);
}

export function windowsOf(groups) {
  const found = new Map();
  for (const one of groups) found.set(`${one.start} ${one.end}`, one);
  return [...found.values()].sort((a, b) => a.start - b.start || a.end - b.end);
}

// Windows that all have one length and follow one another go on beyond those that have shown a pane.
function goingOn(windows, view) {
  const [first] = windows;
  const size = first.end - first.start;
  const even = Number.isFinite(size) && windows.every((one) => one.end - one.start === size && (one.start - first.start) % size === 0);
  if (!even || (view.right - view.left) / size > 400) return windows;
  const found = [];
  const from = first.start + Math.floor((view.left - first.start) / size) * size;
  for (let start = from; start < view.right; start += size) found.push({ start, end: start + size, odd: Math.round(start / size) % 2 });
  return found;
}

function columns(ctx, look, windows, view, box, { x }) {
  if (!windows.length) return;
  const apart = windows.every((one, place) => place === 0 || one.start >= windows[place - 1].end);
  goingOn(windows, view).forEach((one, place) => {
    const left = Math.max(x(one.start), box.left);
    const right = Math.min(x(one.end), box.right);
    if (right - left < 3) return;
    ctx.fillStyle = look.column;
    if (apart && (one.odd ?? place % 2)) ctx.fillRect(left, box.top, right - left, box.bottom - box.top);
    ctx.fillStyle = look.rule;
    ctx.fillRect(left, box.top, 1, box.bottom - box.top);
  });
}

function axes(ctx, look, view, box, { x, y }) {
  ctx.font = "12px system-ui, sans-serif";
  ctx.fillStyle = look.soft;
  ctx.strokeStyle = look.rule;
  ctx.lineWidth = 1;
  const across = ticks(view.left, view.right, (box.right - box.left) / 84);
  const up = ticks(view.bottom, view.top, (box.bottom - box.top) / 44);
  ctx.beginPath();
  for (const at of across.found) {
    ctx.moveTo(Math.round(x(at)) + 0.5, box.bottom);
    ctx.lineTo(Math.round(x(at)) + 0.5, box.bottom + 5);
  }
  for (const at of up.found) {
    ctx.moveTo(box.left, Math.round(y(at)) + 0.5);
    ctx.lineTo(box.right, Math.round(y(at)) + 0.5);
  }
  ctx.stroke();
  ctx.textAlign = "center";
  for (const at of across.found) {
    const text = tick(at, across.step);
    if (x(at) + ctx.measureText(text).width / 2 <= ctx.canvas.clientWidth) ctx.fillText(text, x(at), box.bottom + 18);
  }
  ctx.textAlign = "right";
  for (const at of up.found) ctx.fillText(tick(at, up.step), box.left - 7, y(at) + 4);
  ctx.fillStyle = look.ink;
  ctx.font = "600 12px system-ui, sans-serif";
  ctx.fillText("event time: when it happened →", box.right, box.bottom + 34);
  ctx.textAlign = "left";
  ctx.fillText("↑ processing time: when it was seen", 4, 16);
}

function ideal(ctx, look, view, box, { x, y }) {
  const low = Math.max(view.left, view.bottom);
  const high = Math.min(view.right, view.top);
  if (low >= high) return;
  ctx.strokeStyle = look.soft;
  ctx.setLineDash([2, 5]);
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x(low), y(low));
  ctx.lineTo(x(high), y(high));
  ctx.stroke();
  ctx.setLineDash([]);
}

function watermark(ctx, look, marks, view, box, { x, y }) {
  const within = (time) => Math.min(Math.max(x(time), box.left), box.right);
  ctx.strokeStyle = look.mark;
  ctx.lineWidth = 2.5;
  ctx.lineJoin = "round";
  ctx.beginPath();
  let last = null;
  for (const [now, time] of marks) {
    if (now > view.top) break;
    // It stood since the batch before, and has moved now.
    if (last === null) ctx.moveTo(within(time), y(now));
    else {
      ctx.lineTo(within(time), y(last[0]));
      ctx.lineTo(within(time), y(now));
    }
    last = [now, time];
  }
  ctx.stroke();
  if (last === null || !Number.isFinite(last[1])) return;
  const at = within(last[1]);
  const flip = at > box.right - 90;
  ctx.fillStyle = look.mark;
  ctx.font = "700 13px system-ui, sans-serif";
  ctx.textAlign = flip ? "right" : "left";
  const place = [at + (flip ? -7 : 7), Math.max(y(last[0]) - 7, box.top + 12)];
  ctx.strokeStyle = look.box;
  ctx.lineWidth = 5;
  ctx.strokeText("watermark", ...place);
  ctx.fillText("watermark", ...place);
}

function bar(ctx, look, one, left, width, up, all) {
  const kind = TIMINGS[one.kind];
  const colour = { early: look.early, on_time: look.on_time, late: look.latePane }[kind];
  ctx.fillStyle = ctx.strokeStyle = colour;
  ctx.lineWidth = 1;
  const top = up - BAR;
  if (one.op < 0) ctx.setLineDash([3, 2]);
  if (kind === "early" || one.op < 0) {
    ctx.fillStyle = look.box;
    ctx.fillRect(left, top, width, BAR);
    ctx.strokeRect(left + 0.5, top + 0.5, width - 1, BAR - 1);
  } else ctx.fillRect(left, top, width, BAR);
  ctx.setLineDash([]);
  if (kind === "late" && one.op > 0) { // hatched, so that it is told from on time without its colour
    ctx.strokeStyle = look.onPane;
    ctx.globalAlpha = 0.3;
    ctx.beginPath();
    for (let at = left + 4; at < left + width; at += 6) { ctx.moveTo(at, up); ctx.lineTo(Math.min(at + 5, left + width), top); }
    ctx.stroke();
    ctx.globalAlpha = 1;
  }
  const minus = one.op < 0 ? "−" : "";
  const value = minus + (one.count > 1 ? `${one.count} keys` : all ? one.key : one.text);
  const whole = all && one.count === 1 ? [`${one.key}: ${minus}${one.text} ${SIGN[kind]}`] : [];
  const text = [...whole, `${value} ${SIGN[kind]}`, value, SIGN[kind]].find((said) => ctx.measureText(said).width < width - 6);
  if (text === undefined) return;
  ctx.fillStyle = kind === "early" || one.op < 0 ? look.ink : look.onPane;
  ctx.textAlign = "center";
  ctx.fillText(text, left + width / 2, up - 4);
}

function panes(ctx, look, groups, view, box, { x, y }, all) {
  const taken = new Map(); // by window: how far up its bars have come, so that none covers another
  const bars = [];
  ctx.font = "11px system-ui, sans-serif";
  for (const one of groups) {
    if (one.now < view.bottom || one.now > view.top || one.end < view.left || one.start > view.right) continue;
    const left = Math.max(x(one.start), box.left) + 1;
    const width = Math.min(x(one.end), box.right) - left - 1;
    const up = Math.round(y(one.now));
    ctx.fillStyle = { early: look.early, on_time: look.on_time, late: look.latePane }[TIMINGS[one.kind]];
    ctx.fillRect(left, up - 1, Math.max(width, 2), one.kind === 0 ? 1 : 2);
    if (width < 24) continue;
    bars.push([one, left, width, up]);
  }
  // What is on time has its bar first, then what is late; an early one has it where there is room.
  const rank = [2, 0, 1];
  bars.sort((a, b) => rank[a[0].kind] - rank[b[0].kind] || b[0].now - a[0].now);
  for (const [one, left, width, up] of bars) {
    const name = `${one.start} ${one.end}`;
    const rows = taken.get(name) ?? [];
    if (up - BAR < box.top || rows.some((row) => Math.abs(row - up) < BAR + 1)) continue;
    rows.push(up);
    taken.set(name, rows);
    bar(ctx, look, one, left, width, up, all);
  }
}

export function draw(ctx, look, { dots, groups, windows, marks }, view, size, chosen) {
  const box = { left: EDGE.left, right: size.width - EDGE.right, top: EDGE.top, bottom: size.height - EDGE.bottom };
  const to = scales(view, box);
  const seen = inSight(dots, view, chosen.stage, chosen.key);
  ctx.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  ctx.clearRect(0, 0, size.width, size.height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  ctx.clip();
  columns(ctx, look, windows, view, box, to);
  ctx.restore();
  axes(ctx, look, view, box, to);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, box.top - 4, box.right - box.left, box.bottom - box.top + 8);
  ctx.clip();
  ideal(ctx, look, view, box, to);
  panes(ctx, look, groups, view, box, to, chosen.key === null);
  dotsOf(ctx, look, dots, seen, view, box, to, size.ratio);
  watermark(ctx, look, marks, view, box, to);
  ctx.restore();
  return { box, to, seen };
}
