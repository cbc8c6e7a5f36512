// State and hot keys: how much is remembered, and which keys have most of the traffic.

import { Chart, DOUBLED, thinned } from "./charts.js";
import { bytes, count, html, percent, rough, swap, table } from "./making.js";

export function state(held) {
  const said = html("p", { class: "lead" });
  const rows = new Chart({ title: "Rows of state, and open windows", value: (value) => rough(value ?? NaN) });
  const sizes = new Chart({ title: "Bytes of state and of the checkpoint", value: (value) => bytes(Math.round(value ?? 0)), steps: DOUBLED });
  const large = html("div", {}, sizes.element);
  const list = html("div");
  const stages = html("div");

  function update() {
    const some = thinned(held.batches);
    const last = held.last();
    if (last === null) {
      said.textContent = "No batch has ended yet.";
      return;
    }
    const times = some.map((one) => one.now / 1e6);
    const of = (group, name) => some.map((one) => one[group]?.[name] ?? null);
    const has = (group, name) => some.some((one) => one[group]?.[name] !== undefined);
    rows.set(times, [{ name: "open windows", values: of("state", "open") },
      ...(has("state", "rows") ? [{ name: "rows of state", values: of("state", "rows") }] : [])]);
    const known = [["state", "bytes", "state"], ["checkpoint", "bytes", "checkpoint"]].filter(([group, name]) => has(group, name));
    large.hidden = !known.length;
    if (known.length) sizes.set(times, known.map(([group, name, word]) => ({ name: word, values: of(group, name) })));
    said.textContent = words(held.standing?.overview, last.hot);
    const by = Object.entries(last.held ?? {});
    stages.hidden = by.every(([name]) => name.endsWith(": windows"));
    swap(stages, table(["stage", { number: "holds" }], by.map(([name, size]) => [name, count(size)]),
      { caption: "What each stage remembers: windows, rows, entries and timers" }));
    swap(list, table(["key", { number: "share of events" }, "", { number: "at most too high by" }],
      last.hot.map(([key, share, error]) => [key, percent(share), meter(share), percent(error)]),
      { caption: "Keys with the most events", empty: "keys are counted when events have come" }));
  }

  return { title: "State", update, element: html("div", {}, html("h2", {}, "State and hot keys"), said, stages, list,
    html("div", { class: "pair" }, rows.element, large)) };
}

function meter(share) {
  const bar = html("span", { class: "bar" });
  bar.style.width = `${Math.max(1, Math.min(100, 100 * share))}%`;
  return html("span", { class: "meter", "aria-hidden": "true" }, bar);
}

function words(seen, hot) {
  if (!seen) return "";
  const size = seen.state_bytes === null ? "" : `, ${bytes(seen.state_bytes)}`;
  const whole = seen.checkpoint_bytes === null ? "" : ` The checkpoint has ${bytes(seen.checkpoint_bytes)}.`;
  const first = hot[0] ? ` The busiest key, ${hot[0][0]}, has ${percent(hot[0][1])} of the events.` : "";
  return `${count(seen.open_windows)} windows are open, with ${count(seen.state_rows)} rows of state${size}.${whole}${first}`;
}
