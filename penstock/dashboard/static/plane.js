// The plane as a thing to handle: it follows, pauses, zooms, lets a key and a stage be chosen, and says what is pointed at.

import { colours, draw, grouped, scales, windowsOf } from "./draw.js";
import { handle } from "./hands.js";
import { GONE, LATE, BAD, TIMINGS } from "./held.js";
import { legend, paneWords } from "./legend.js";
import { between, clock, html, many, span, table, timing } from "./making.js";

const SPANS = [["1 min", 60], ["2 min", 120], ["10 min", 600], ["all", Infinity]];
const EASE = 450; // milliseconds in which it comes to where it should be
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Between a millisecond and a century.
const possible = (view, factor) => (view.right - view.left) * factor >= 1000 && (view.right - view.left) * factor <= 4e15;

export class PlaneBox {
  constructor(held) {
    this.held = held;
    this.key = null;
    this.stage = 0;
    this.seconds = innerWidth < 600 ? 60 : 120;
    this.follow = true;
    this.view = null;
    this.target = null;
    this.drawn = null;
    this.frames = 0;
    this.element = this._build();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.resize());
  }

  _build() {
    const button = (text, label, what) => html("button", { type: "button", "aria-label": label, onclick: what }, text);
    this.canvas = html("canvas", { tabindex: 0, role: "img", "aria-label": "the plane", class: "plane" });
    this.tip = html("div", { class: "tip", hidden: "" });
    this.nothing = html("p", { class: "nothing" }, "When the first batch has ended, its events appear here: to the right by when they happened, ",
      "upwards by when they were seen.");
    this.told = html("p", { class: "told", "aria-live": "off" });
    this.followButton = html("button", { type: "button", class: "follow", onclick: () => this.setFollow(!this.follow) }, "Follow");
    this.keys = html("datalist", { id: "plane-keys" });
    this.keyField = html("input", { id: "plane-key", list: "plane-keys", placeholder: "all keys", autocomplete: "off",
      spellcheck: "false", onchange: () => this.choose(this.keyField.value) });
    this.stageField = html("select", { id: "plane-stage", onchange: () => this.chooseStage(Number(this.stageField.value)) });
    this.stageLabel = html("label", { for: "plane-stage", hidden: "" }, "stage ", this.stageField);
    const spans = html("div", { class: "group", role: "group", "aria-label": "how much is shown" },
      SPANS.map(([name, seconds]) => html("button", { type: "button", onclick: () => this.setSpan(seconds), "data-span": seconds }, name)));
    this.spans = spans;
    this.asTable = html("details", { ontoggle: () => this.fillTable() }, html("summary", {}, "The same as a table"));
    handle(this);
    return html("section", { class: "planebox", "aria-label": "The plane" },
      html("div", { class: "tools" }, this.followButton, spans,
        html("div", { class: "group", role: "group", "aria-label": "zoom" },
          button("−", "zoom out", () => this.zoom(1.5)), button("+", "zoom in", () => this.zoom(1 / 1.5))),
        html("label", { for: "plane-key" }, "key ", this.keyField), this.keys, this.stageLabel),
      html("div", { class: "stage" }, this.canvas, this.tip, this.nothing), legend(), this.told, this.asTable);
  }

  // Another run: what was in sight is not of it.
  forget() {
    this.view = this.target = this.drawn = this.from = null;
    this.follow = true;
    this.nothing.hidden = false;
    this.choose("");
  }

  // News, or another choice: what is drawn is put together anew.
  update() {
    const { held } = this;
    if (!this.element.isConnected || this.seen === held.version) return;
    this.seen = held.version;
    this.remake();
    this.fillTable();
  }

  remake() {
    const { held } = this;
    this.groups = grouped(held.panes, this.stage, this.key);
    this.windows = windowsOf(this.groups);
    this.marks = held.batches.map((one) => [one.now, one.marks[this.stage] ?? one.next]);
    const last = held.last();
    if (last !== null && this.stage === 0) this.marks.push([last.now, last.next]); // of later stages it is not told
    this._choices();
    if (this.follow || this.view === null) this.target = this._newest();
    this.moved = performance.now();
    this.from = this.view === null || still() ? null : { ...this.view };
    this.frame();
  }

  _choices() {
    const known = this.held.keys(this.stage, 300);
    if (known.join("\n") !== this.known) {
      this.known = known.join("\n");
      this.keys.replaceChildren(...known.map((key) => html("option", { value: key })));
    }
    const stages = this.held.last()?.marks.length ?? 1;
    if (stages > 1 && this.stageField.options.length !== stages) {
      this.stageLabel.hidden = false;
      this.stageField.replaceChildren(...Array.from({ length: stages }, (_, at) =>
        html("option", { value: at }, this.stageNames?.[at] ?? `${at + 1}`)));
    }
    for (const one of this.spans.children) one.setAttribute("aria-pressed", String(Number(one.dataset.span) === this.seconds));
    this.followButton.textContent = this.follow ? "● Following" : "Follow";
    this.followButton.setAttribute("aria-pressed", String(this.follow));
  }

  // The newest that there is: its moments up, and across what happened in them, without the furthest stragglers.
  _newest() {
    const { held: { batches, dots }, seconds } = this;
    if (!batches.length) return null;
    const top = batches[batches.length - 1].now;
    const first = Math.max(batches[0].now, top - seconds * 1e6);
    const up = Math.max(top - first, 30e6);
    const times = [];
    const stride = Math.max(1, Math.floor(dots.count / 20_000));
    for (let at = 0; at < dots.count; at += stride) {
      if (dots.now[at] >= first && dots.fate[at] !== GONE && Number.isFinite(dots.time[at])) times.push(dots.time[at]);
    }
    times.sort((a, b) => a - b);
    const marks = this.marks.filter(([now, time]) => now >= first && Number.isFinite(time)).map(([, time]) => time);
    if (!times.length && !marks.length) return { left: first - up, right: first + up, bottom: first, top: first + up };
    const low = Math.min(times[Math.floor(times.length * 0.01)] ?? Infinity, marks[0] ?? Infinity);
    const high = Math.max(times[times.length - 1] ?? -Infinity, marks[marks.length - 1] ?? -Infinity);
    const across = Math.max(high - low, 20e6);
    return { left: low - 0.02 * across, right: low + 1.03 * across, bottom: first - 0.02 * up, top: first + 1.06 * up };
  }

  frame() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame((time) => {
      this.pending = false;
      if (this.element.isConnected && this.target !== null) this._paint(time);
    });
  }

  _paint(time) {
    const done = this.from === null ? 1 : Math.min(1, (time - this.moved) / EASE);
    const eased = 1 - (1 - Math.max(done, 0)) ** 3;
    this.view = {};
    for (const name of ["left", "right", "bottom", "top"]) {
      const from = this.from === null ? this.target[name] : this.from[name];
      this.view[name] = from + (this.target[name] - from) * eased;
    }
    const ratio = devicePixelRatio || 1;
    const size = { width: this.canvas.clientWidth, height: this.canvas.clientHeight, ratio };
    if (!size.width) return;
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.ctx ??= this.canvas.getContext("2d");
    this.look ??= colours(this.canvas);
    const what = { dots: this.held.dots, groups: this.groups, windows: this.windows, marks: this.marks };
    this.drawn = draw(this.ctx, this.look, what, this.view, size, { stage: this.stage, key: this.key });
    this.frames += 1;
    this.nothing.hidden = true;
    if (done < 1) this.frame();
    else this._tell();
  }

  _tell() {
    const { view, drawn } = this;
    const panes = this.groups.filter((one) => one.now >= view.bottom && one.now <= view.top && one.end >= view.left
      && one.start <= view.right).reduce((sum, one) => sum + one.count, 0);
    const last = this.marks[this.marks.length - 1];
    const of = this.key === null ? "all keys" : `key ${this.key}`;
    const said = `Seen from ${between(Math.max(view.bottom, 0), view.top)}, ${of}: `
      + `${many(drawn.seen.counted.length, "event")}, ${many(drawn.seen.marked.length, "late or unusable one")}, `
      + `${many(panes, "pane")} in sight. Watermark ${clock(last?.[1])}.`;
    this.told.textContent = said;
    this.canvas.setAttribute("aria-label", `${said} Arrow keys move, plus and minus zoom, 0 follows.`);
  }

  resize() {
    this.look = null;
    this.from = null;
    this.frame();
  }

  choose(key) {
    this.key = key === "" ? null : key;
    this.keyField.value = key;
    this.remake();
    this.fillTable();
  }

  chooseStage(stage) {
    this.stage = stage;
    this.choose("");
  }

  setSpan(seconds) {
    this.seconds = seconds;
    this.setFollow(true);
  }

  setFollow(follow) {
    this.follow = follow;
    this.remake();
  }

  shift(across, up, of) {
    this._go({ left: of.left + across, right: of.right + across, bottom: of.bottom + up, top: of.top + up }, true);
  }

  zoom(factor, x = null, y = null) {
    if (this.view === null || this.drawn === null) return;
    const { to } = this.drawn;
    const view = this.target ?? this.view;
    const [time, now] = [x === null ? (view.left + view.right) / 2 : to.time(x), y === null ? (view.bottom + view.top) / 2 : to.now(y)];
    if (!possible(view, factor)) return;
    this._go({ left: time - (time - view.left) * factor, right: time + (view.right - time) * factor,
      bottom: now - (now - view.bottom) * factor, top: now + (view.top - now) * factor });
  }

  // Two fingers: what was between them stays between them, as they part and as they move.
  pinch(factor, was, is, of) {
    if (!possible(of, factor)) return;
    const to = scales(of, this.drawn.box);
    const [wide, high] = [(of.right - of.left) * factor, (of.top - of.bottom) * factor];
    const left = to.time(was.x) - (to.time(is.x) - of.left) * factor;
    const bottom = to.now(was.y) - (to.now(is.y) - of.bottom) * factor;
    this._go({ left, right: left + wide, bottom, top: bottom + high }, true);
  }

  _go(view, at_once = false) {
    this.follow = false;
    this.target = view;
    this.from = at_once || still() ? null : { ...this.view };
    this.moved = performance.now();
    this._choices();
    this.frame();
  }

  // What is pointed at: the nearest dot, else the pane below.
  point(x, y) {
    if (this.drawn === null) return;
    const { to, seen } = this.drawn;
    const { dots } = this.held;
    let best = null;
    let near = 81;
    for (const list of [seen.counted, seen.marked]) {
      for (const at of list) {
        const far = (to.x(dots.time[at]) - x) ** 2 + (to.y(dots.now[at]) - y) ** 2;
        if (far < near) [best, near] = [at, far];
      }
    }
    const pane = best === null ? this._paneAt(x, y) : null;
    this.tip.hidden = best === null && pane === null;
    if (this.tip.hidden) return;
    this.tip.replaceChildren(...(best === null ? paneWords(this.held.panes, pane) : this._dotWords(best)));
    const right = x > this.canvas.clientWidth / 2;
    this.tip.style.left = right ? "auto" : `${x + 14}px`;
    this.tip.style.right = right ? `${this.canvas.clientWidth - x + 14}px` : "auto";
    this.tip.style.top = `${Math.max(0, y - 20)}px`;
  }

  _paneAt(x, y) {
    const { to } = this.drawn;
    const time = to.time(x);
    return this.groups.findLast((one) => one.start <= time && time < one.end && y <= to.y(one.now) + 2
      && y >= to.y(one.now) - 15) ?? null;
  }

  _dotWords(at) {
    const { dots, places } = this.held;
    const fate = dots.fate[at] === LATE ? "late" : dots.fate[at] === BAD ? "could not be used" : "";
    const said = [html("strong", {}, dots.key[at] || "event"), dots.text[at],
      `happened ${clock(dots.time[at], true)}`, `seen ${clock(dots.now[at], true)}, ${span(dots.now[at] - dots.time[at])} later`,
      `${places[dots.origin[at]]}, offset ${dots.offset[at]}, batch ${dots.batch[at]}`];
    if (fate) said.push(`${fate}: ${dots.why[at] ?? ""}`);
    return said.map((one) => html("div", {}, one));
  }

  fillTable() {
    if (!this.asTable.open || this.view === null) return;
    const { panes } = this.held;
    const last = this.groups.slice(-40).reverse();
    const rows = last.map((one) => [one.count > 1 ? `${one.count} keys` : one.key, between(one.start, one.end),
      timing(TIMINGS[one.kind], one.op), clock(one.now, true), one.count > 1 ? "" : panes.text[one.at]]);
    const shown = table(["key", "window", "timing", "shown at", "answer"], rows, { caption: "The last panes, newest first" });
    this.asTable.replaceChildren(this.asTable.firstElementChild, shown);
  }
}
