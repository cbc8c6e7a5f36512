// Charts by uPlot: the time of each batch across. Lines are told apart by their dashes, too, and by their names.

import { html, tick } from "./making.js";

const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 5], [4, 2, 1, 2], [1, 5], [18, 3]];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const HUES = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];

function axes(value, steps) {
  const ink = colour("--soft");
  const rule = colour("--rule");
  const grid = { stroke: rule, width: 1 };
  return [
    { stroke: ink, grid: { show: false }, ticks: grid, space: 84, values: (_, at) => at.map((time) =>
      tick(time * 1e6, at.length > 1 ? (at[1] - at[0]) * 1e6 : 1e6)) },
    { stroke: ink, grid, ticks: { show: false }, size: 64, values: (_, at) => at.map(value), ...(steps ? { incrs: steps } : {}) },
  ];
}

// Bytes are counted by powers of two, and so are the lines of their axis.
export const DOUBLED = Array.from({ length: 50 }, (_, power) => 2 ** power);

function stacked(columns) {
  const sums = columns[0].map(() => 0);
  return columns.map((column) => column.map((value, at) => (sums[at] += value ?? 0)));
}

// A chart that keeps its element and is given new data; the names of its lines may change with them.
export class Chart {
  constructor({ title, value, stack = false, height = 190, most = null, steps = null }) {
    Object.assign(this, { value, stack, height, most, steps, title });
    this.box = html("div", { class: "chartbox", role: "img" });
    this.element = html("figure", { class: "chart" }, html("figcaption", {}, title), this.box);
    new ResizeObserver(() => this._fit()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.names = null; });
  }

  set(times, lines) {
    const names = lines.map((one) => one.name).join("\n");
    const columns = lines.map((one) => one.values);
    const data = [times, ...(this.stack ? stacked(columns).reverse() : columns)];
    if (names !== this.names || !this.plot) {
      this.names = names;
      this.plot?.destroy();
      this.plot = new uPlot(this._options(this.stack ? [...lines].reverse() : lines), data, this.box);
    } else this.plot.setData(data);
    this.plot.setLegend({ idx: times.length - 1 });
    const last = lines.map((one) => `${one.name} ${this.value(one.values[one.values.length - 1])}`).join(", ");
    this.box.setAttribute("aria-label", `${this.title}; now: ${last}`);
  }

  _options(lines) {
    const { most, value, stack, height } = this;
    const series = lines.map((one, at) => {
      const place = stack ? lines.length - 1 - at : at;
      const hue = colour(HUES[place % HUES.length]);
      return { label: one.name, stroke: hue, width: stack ? 1 : 2, dash: stack ? [] : DASHES[place % DASHES.length],
        fill: stack ? hue : undefined, points: { show: false },
        value: (plot, _, of, at_) => (at_ === null ? "" : value(this._own(plot, of, at_))) };
    });
    return { width: this._width(), height, series: [{ value: (_, time) => (time === null ? "" : tick(time * 1e6, 1e6)) }, ...series],
      axes: axes(value, this.steps), scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), most ?? Math.max((high ?? 0) * 1.08, 1e-9)] } },
      cursor: { drag: { x: false, y: false } }, legend: { live: true },
      hooks: { ready: [(plot) => plot.setLegend({ idx: plot.data[0].length - 1 })] } };
  }

  // Of a stack the lines are sums: what is said of one is its own part.
  _own(plot, of, at) {
    const whole = plot.data[of][at];
    if (!this.stack || of === plot.data.length - 1) return whole;
    return whole - plot.data[of + 1][at];
  }

  _width() {
    return Math.max(240, Math.floor(this.box.clientWidth || 600));
  }

  _fit() {
    if (this.plot && this.plot.width !== this._width()) this.plot.setSize({ width: this._width(), height: this.height });
  }
}

// At most so many batches across: more would not be seen.
export function thinned(batches, most = 600) {
  const step = Math.ceil(batches.length / most) || 1;
  return step === 1 ? batches : batches.filter((_, at) => (batches.length - 1 - at) % step === 0);
}
