// Partitions and lag: where each clock stands, who holds the watermark back, and what the logs have beyond it.

import { Chart, thinned } from "./charts.js";
import { clock, count, html, number, span, swap, table } from "./making.js";

export function partitions(held) {
  const said = html("p", { class: "lead" });
  const list = html("div");
  const behind = new Chart({ title: "How far the clock of each partition is behind", value: (value) => span((value ?? NaN) * 1e6) });
  const lag = new Chart({ title: "Rows in the log beyond the batch", value: (value) => count(value) });
  const logs = html("div", { hidden: "" }, lag.element);

  function update() {
    const told = held.standing?.partitions ?? [];
    const active = told.filter((one) => !one.idle);
    const slowest = active.reduce((low, one) => (low === null || number(one.watermark) < number(low.watermark) ? one : low), null);
    const front = Math.max(...told.map((one) => number(one.newest ?? "-inf")), -Infinity);
    said.textContent = words(told, active, slowest, held.standing);
    const rows = told.map((one) => {
      const late = front - number(one.newest ?? "-inf");
      const state = one === slowest && active.length > 1 ? html("strong", {}, "◀ the watermark waits for it")
        : one.idle ? `idle: silent for ${span(one.silent_for)}, nobody waits` : one.silent_for ? `silent for ${span(one.silent_for)}` : "active";
      return [`${one.source}/${one.partition}`, state, clock(one.newest), clock(one.watermark), Number.isFinite(late) ? span(late) : "–",
        count(one.lag), count(one.current), count(one.end), span(one.to_log), span(one.from_log)];
    });
    swap(list, table(["partition", "state", "newest event", "its watermark", { number: "behind the first" },
      { number: "lag" }, { number: "read to" }, { number: "log ends" }, { number: "event to log" }, { number: "log to here" }], rows,
      { className: "stack", caption: "Partitions", empty: "no partition has been read yet" }));
    charts();
  }

  function charts() {
    const batches = thinned(held.batches);
    const names = [...new Set(batches.flatMap((one) => one.partitions.map((part) => `${part.source}/${part.partition}`)))].slice(0, 8);
    if (!batches.length || !names.length) return;
    const of = (one, name) => one.partitions.find((part) => `${part.source}/${part.partition}` === name);
    const times = batches.map((one) => one.now / 1e6);
    behind.set(times, names.map((name) => ({ name, values: batches.map((one) => {
      const at = number(of(one, name)?.watermark ?? "-inf");
      return Number.isFinite(at) ? (one.now - at) / 1e6 : null;
    }) })));
    const known = batches.some((one) => one.partitions.some((part) => part.lag !== null && part.lag !== undefined));
    logs.hidden = !known;
    if (known) lag.set(times, names.map((name) => ({ name, values: batches.map((one) => of(one, name)?.lag ?? null) })));
  }

  return { title: "Partitions", update, element: html("div", {}, html("h2", {}, "Partitions and lag"), said, list, behind.element, logs) };
}

function words(told, active, slowest, standing) {
  if (!told.length) return "No partition has been read yet.";
  const idle = told.length - active.length;
  const rest = idle ? ` ${idle} of ${told.length} ${idle === 1 ? "is" : "are"} idle and not waited for.` : "";
  if (slowest === null) return `Every partition is idle: the watermark stands.${rest}`;
  const second = active.filter((one) => one !== slowest).map((one) => number(one.watermark)).sort((a, b) => a - b)[0];
  const back = second === undefined ? NaN : second - number(slowest.watermark);
  const holds = Number.isFinite(back) && back > 0 ? `, ${span(back)} behind the next` : "";
  return `The watermark waits for the slowest, ${slowest.source}/${slowest.partition}${holds}. ` +
    `It stands at ${clock(standing.watermark)}, ${span(standing.behind)} behind the last batch.${rest}`;
}
