// Charts by uPlot: numbers over the steps as lines, or beside one another as bars. What they say is below them in words.

import { html, svg } from "./making.js";

const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
const HEIGHT = 190;
const FRAME = 2;
const FONT = "11px system-ui, sans-serif";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const hue = (number) => colour(`--c${number % 4}`);
let drawn = [];

function short(number) {
  return Number.isInteger(number) ? number.toLocaleString("en") : number.toFixed(1);
}

// Those that were drawn before: uPlot listens to the window until it is told that a chart has gone.
export function forgetCharts() {
  drawn.forEach((plot) => plot.destroy());
  drawn = [];
}

function axes(across) {
  const rule = { stroke: colour("--rule"), width: 1 };
  const both = { stroke: colour("--ink"), font: FONT };
  return [{ ...both, grid: { show: false }, ticks: { show: false }, ...across },
    { ...both, grid: rule, ticks: { show: false }, size: 54, values: (_, at) => at.map(short) }];
}

// A chart, what it says to those who do not see it, and its keys.
function chart(panel, named, step, width, data, options) {
  const told = named.map((one) => `${one.name} ${short(one.values[step] ?? 0)}`).join(", ");
  const box = html("div", { class: "chart", role: "img", "aria-label": `${panel.title}: ${told}` });
  const common = { width: width - FRAME, height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [12, 12, null, null] };
  drawn.push(new uPlot({ ...common, ...options }, data, box));
  const keys = named.map((one, number) => {
    const dashes = panel.kind === "lines" ? DASHES[number % 4].join(" ") || null : null;
    const sample = svg("svg", { width: 30, height: 10, "aria-hidden": "true" },
      svg("path", { class: `sample ${panel.kind} c${number % 4}`, d: "M0 5H30", "stroke-dasharray": dashes }));
    return html("li", {}, sample, ` ${one.name}: ${short(one.values[step] ?? 0)} ${panel.unit}`);
  });
  return html("div", {}, box, html("ul", { class: "keys" }, ...keys));
}

// A name in lines that are short enough for its bar.
function wrapped(name, signs) {
  const lines = [];
  for (const word of name.split(" ")) {
    if (lines.length && lines.at(-1).length + word.length < signs) lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines;
}

const most = (named) => Math.max(...named.flatMap((one) => one.values), 1);

export function drawLines(panel, step, width) {
  const count = Math.max(...panel.lines.map((line) => line.values.length));
  const steps = Array.from({ length: count }, (_, at) => at + 1);
  // What is to come is not shown, though the chart has room for it.
  const data = [steps, ...panel.lines.map((line) => line.values.map((value, at) => (at <= step ? value : null)))];
  const series = panel.lines.map((_, number) =>
    ({ stroke: hue(number), width: 2.2, dash: DASHES[number % 4], points: { show: false } }));
  const whole = { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500], label: "steps", labelFont: FONT, labelSize: 14, labelGap: 0, size: 24 };
  return chart(panel, panel.lines, step, width, data, { series: [{}, ...series], axes: axes(whole),
    scales: { x: { time: false, range: [1, Math.max(count, 2)] }, y: { range: [0, most(panel.lines) * 1.04] } } });
}

export function drawBars(panel, step, width) {
  const count = panel.bars.length;
  const places = panel.bars.map((_, at) => at);
  // A series for each bar, so that each has its own colour; where the others stand it has nothing.
  const data = [places, ...panel.bars.map((bar, own) => places.map((at) => (at === own ? bar.values[step] ?? 0 : null)))];
  const series = panel.bars.map((_, number) => ({ stroke: hue(number), fill: hue(number), points: { show: false },
    paths: uPlot.paths.bars({ size: [0.6, 90] }) }));
  const names = panel.bars.map((bar) => wrapped(bar.name, (width - 70) / count / 6.6));
  const below = { splits: () => places, size: 14 + 13 * Math.max(...names.map((lines) => lines.length)), lineGap: 1.1,
    values: () => names.map((lines) => lines.join("\n")) };
  return chart(panel, panel.bars, step, width, data, { series: [{}, ...series], axes: axes(below),
    scales: { x: { time: false, range: [-0.5, count - 0.5] }, y: { range: [0, most(panel.bars) * 1.04] } } });
}
