// Batches: where the time went, how many events came, and how long each took.

import { Chart, thinned } from "./charts.js";
import { clock, count, html, percent, rough, span, swap, table } from "./making.js";

const SHARES = [["read", "reading"], ["step", "computing"], ["sinks", "writing to sinks"], ["down", "waiting for a sink"], ["idle", "idle"]];

// `waiting` of a batch is both: a sink that did not answer, and the pause until there is something to do.
function parts(one) {
  const down = one.elapsed ? Math.min(one.shares.waiting ?? 0, (one.waited ?? 0) / one.elapsed) : 0;
  return { ...one.shares, down, idle: Math.max(0, (one.shares.waiting ?? 0) - down) };
}

export function batches(held) {
  const said = html("p", { class: "lead" });
  const time = new Chart({ title: "Where the time went", value: (value) => percent(value ?? 0), stack: true, most: 1, height: 220 });
  const rate = new Chart({ title: "Events a second", value: (value) => rough(value ?? NaN) });
  const took = new Chart({ title: "Seconds that a batch took", value: (value) => span((value ?? NaN) * 1e6) });
  const list = html("div");

  function update() {
    const some = thinned(held.batches);
    if (!some.length) {
      said.textContent = "No batch has ended yet.";
      return;
    }
    const times = some.map((one) => one.now / 1e6);
    const spent = some.map(parts);
    time.set(times, SHARES.map(([name, word]) => ({ name: word, values: spent.map((one) => one[name] ?? 0) })));
    rate.set(times, [{ name: "events a second", values: some.map((one) => (one.elapsed ? (one.counts.read ?? 0) / one.elapsed : null)) }]);
    took.set(times, [{ name: "batch", values: some.map((one) => one.seconds) }, { name: "with the pause before it", values: some.map((one) => one.elapsed) }]);
    said.textContent = words(held.standing?.overview);
    const rows = held.batches.slice(-30).reverse().map((one) => {
      const held_ = parts(one);
      return [`${one.batch}${one.replayed ? " (run again)" : ""}`, clock(one.now), count(one.counts.read), count(one.rows.panes ?? 0),
        span(one.seconds * 1e6), ...SHARES.map(([name]) => percent(held_[name] ?? 0))];
    });
    swap(list, table(["batch", "its clock", { number: "events" }, { number: "panes" }, { number: "took" },
      ...SHARES.map(([, word]) => ({ number: word }))], rows, { caption: "The last batches, newest first", className: "tall" }));
  }

  return { title: "Batches", update, element: html("div", {}, html("h2", {}, "Batches: where the time went"), said, time.element,
    html("div", { class: "pair" }, rate.element, took.element), list) };
}

function words(seen) {
  if (!seen) return "";
  const { read = 0, step = 0, sinks = 0 } = seen.shares;
  const busy = read + step;
  const most = seen.waited_share > 0.2 ? "It mostly waits for a sink that does not answer."
    : sinks > busy && sinks > 0.3 ? "Writing to sinks takes most of it: the sink is what limits."
      : busy + sinks > 0.9 ? "It has no time to spare: when more comes, it falls behind." : "It has time to spare.";
  return `In the last ten minutes it was busy ${percent(busy)} of the time (${percent(read)} reading, ${percent(step)} computing), wrote to ` +
    `sinks ${percent(sinks)}, waited for a sink ${percent(seen.waited_share)}, and was idle the rest. A batch takes ${span(seen.batch_seconds * 1e6)}. ${most}`;
}
