// What the page remembers of a run: the newest of everything, in arrays that never grow beyond their limit.

import { number } from "./making.js";

export const LIMITS = { dots: 120_000, panes: 20_000, batches: 3_000, rows: 400 };
export const COUNTED = 0, LATE = 1, BAD = 2, GONE = 3;
export const TIMINGS = ["early", "on_time", "late"];

// Columns of numbers and of texts, written round and round.
class Ring {
  constructor(limit, numbers, texts) {
    this.limit = limit;
    this.count = 0;
    this.next = 0;
    this.numbers = numbers;
    this.texts = texts;
    for (const [name, Kind] of Object.entries(numbers)) this[name] = new Kind(limit);
    for (const name of texts) this[name] = new Array(limit);
  }

  // A place to write at; the oldest is overwritten when all are taken.
  place() {
    const at = this.next;
    this.next = (at + 1) % this.limit;
    this.count = Math.min(this.count + 1, this.limit);
    return at;
  }

  clear() {
    this.count = this.next = 0;
    for (const name of this.texts) this[name].fill(undefined);
  }
}

export class Held {
  constructor() {
    this.dots = new Ring(LIMITS.dots,
      { time: Float64Array, now: Float64Array, batch: Float64Array, offset: Float64Array, fate: Uint8Array,
        stage: Uint8Array, origin: Uint16Array },
      ["key", "text", "why"]);
    this.panes = new Ring(LIMITS.panes,
      { stage: Uint8Array, start: Float64Array, end: Float64Array, now: Float64Array, batch: Float64Array,
        index: Int32Array, timing: Uint8Array, final: Uint8Array, op: Int8Array },
      ["key", "text"]);
    this.forget();
  }

  forget() {
    this.dots.clear();
    this.panes.clear();
    this.batches = [];
    this.late = [];
    this.bad = [];
    this.given = [];
    this.places = [];
    this.placed = new Map();
    this.standing = null;
    this.version = 0;
    this.heard = 0;
  }

  last() {
    return this.batches[this.batches.length - 1] ?? null;
  }

  stands(told) {
    this.standing = told;
    this.version += 1;
  }

  take(batches) {
    for (const one of batches) this._take(one);
    if (this.batches.length > LIMITS.batches) this.batches.splice(0, this.batches.length - LIMITS.batches);
    for (const kind of ["late", "bad", "given"]) {
      if (this[kind].length > LIMITS.rows) this[kind].splice(0, this[kind].length - LIMITS.rows);
    }
    this.version += 1;
  }

  _take(one) {
    this.heard += 1;
    const last = this.last();
    if (last !== null && one.batch <= last.batch) this._replace(one.batch);
    const now = number(one.now);
    for (const [time, key, text, partition, offset] of one.dots) {
      this._dot(one, now, { event_time: time, key, text, partition, offset }, COUNTED);
    }
    for (const row of one.late) this._dot(one, now, row, LATE);
    for (const row of one.bad) this._dot(one, now, row, BAD);
    for (const pane of one.panes) this._pane(one, now, pane);
    this.late.push(...one.late.map((row) => ({ ...row, batch: one.batch, now })));
    this.bad.push(...one.bad.map((row) => ({ ...row, batch: one.batch, now })));
    this.given.push(...one.given.map((row) => ({ ...row, batch: one.batch, now })));
    const { dots, panes, late, bad, given, ...rest } = one;
    const kept = { ...rest, now, marks: one.watermarks.map(number), next: number(one.watermark) };
    const at = this.batches.findLastIndex((held) => held.batch <= one.batch);
    if (at >= 0 && this.batches[at].batch === one.batch) this.batches[at] = kept;
    else this.batches.splice(at + 1, 0, kept);
  }

  // A batch that was run again: what was held of it is of no account any more.
  _replace(batch) {
    for (const [ring, column] of [[this.dots, "fate"], [this.panes, "timing"]]) {
      for (let at = 0; at < ring.count; at += 1) if (ring.batch[at] === batch) ring[column][at] = GONE;
    }
    for (const kind of ["late", "bad", "given"]) this[kind] = this[kind].filter((row) => row.batch !== batch);
  }

  _dot(one, now, row, fate) {
    const dots = this.dots;
    const at = dots.place();
    dots.time[at] = row.event_time === null || row.event_time === undefined ? NaN : number(row.event_time);
    dots.now[at] = now;
    dots.batch[at] = one.batch;
    dots.offset[at] = row.offset ?? -1;
    dots.fate[at] = fate;
    dots.stage[at] = row.stage ?? 0;
    dots.origin[at] = this._place(row.partition);
    dots.key[at] = row.key ?? "";
    dots.text[at] = row.text ?? "";
    dots.why[at] = row.why;
  }

  _pane(one, now, [stage, key, start, end, index, timing, final, op, text]) {
    const panes = this.panes;
    const at = panes.place();
    panes.stage[at] = stage;
    panes.key[at] = key;
    panes.start[at] = number(start);
    panes.end[at] = number(end);
    panes.now[at] = now;
    panes.batch[at] = one.batch;
    panes.index[at] = index;
    panes.timing[at] = TIMINGS.indexOf(timing);
    panes.final[at] = final ? 1 : 0;
    panes.op[at] = op;
    panes.text[at] = text;
  }

  _place(name) {
    let found = this.placed.get(name);
    if (found === undefined) {
      found = Math.min(this.places.length, 65_535);
      if (found < 65_535) {
        this.places.push(name);
        this.placed.set(name, found);
      }
    }
    return found;
  }

  // The keys that panes are held of, in order; those of very many are cut off.
  keys(stage, most = 500) {
    const found = new Set();
    for (let at = 0; at < this.panes.count && found.size < most; at += 1) {
      if (this.panes.stage[at] === stage && this.panes.timing[at] !== GONE) found.add(this.panes.key[at]);
    }
    return [...found].sort();
  }

  // The panes of one key, oldest first.
  panesOf(stage, key) {
    const { panes } = this;
    const found = [];
    for (let step = 0; step < panes.count; step += 1) {
      const at = (panes.next - panes.count + step + panes.limit) % panes.limit;
      if (panes.stage[at] !== stage || panes.timing[at] === GONE || panes.key[at] !== key) continue;
      found.push({ start: panes.start[at], end: panes.end[at], now: panes.now[at], batch: panes.batch[at],
        index: panes.index[at], timing: TIMINGS[panes.timing[at]], final: panes.final[at] === 1, op: panes.op[at],
        text: panes.text[at] });
    }
    return found;
  }
}
