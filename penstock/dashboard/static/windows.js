// The windows of a key: what each says now, all its panes, and why they are as they are.

import { between, clock, coded, html, many, swap, table, timing } from "./making.js";

export function windows(held) {
  const field = html("input", { id: "key", list: "keys", autocomplete: "off", spellcheck: "false", onchange: () => choose() });
  const known = html("datalist", { id: "keys" });
  const stage = html("select", { id: "stage", onchange: () => { key = null; fill(true); } });
  const stageLabel = html("label", { for: "stage", hidden: "" }, "stage ", stage);
  const list = html("div", { id: "windows" });
  const given = html("div");
  const detail = html("section", { id: "detail", "aria-label": "The chosen window" });
  let key = null;
  let chosen = null;
  let before = "";

  function choose() {
    key = field.value;
    chosen = null;
    fill(true);
  }

  function fill(anew) {
    const stages = held.last()?.marks.length ?? 1;
    if (stages > 1 && stage.options.length !== stages) {
      stageLabel.hidden = false;
      stage.replaceChildren(...Array.from({ length: stages }, (_, at) => html("option", { value: at }, `${at + 1}`)));
    }
    const number = Number(stage.value || 0);
    const keys = held.keys(number);
    known.replaceChildren(...keys.slice(0, 300).map((one) => html("option", { value: one })));
    if (key === null && keys.length) key = keys[0];
    if (document.activeElement !== field) field.value = key ?? "";
    const found = byWindow(held.panesOf(number, key));
    const told = `${number} ${key} ${found.length} ${found[0]?.panes.length} ${held.last()?.next}`;
    if (told === before && !anew) return;
    before = told;
    const last = held.last();
    const watermark = (number === 0 ? last?.next : last?.marks[number]) ?? -Infinity;
    const rows = found.slice(0, 100).map((one) => {
      const pane = one.panes[one.panes.length - 1];
      const name = between(one.start, one.end);
      const open = html("button", { type: "button", class: "plain", "data-name": one.name, "aria-pressed": String(one.name === chosen),
        onclick: () => { chosen = one.name; fill(true); pick(number, one); } }, name);
      return [open, pane.text, timing(pane.timing, pane.op), one.panes.length, clock(pane.now),
        watermark >= one.end ? "✓ complete" : "… open"];
    });
    swap(list, table(["window", "answer now", "kind of answer", { number: "panes" }, "shown at", "state"], rows,
      { className: "tall", caption: key === null ? "Windows" : `Windows of ${key}, newest first`, empty: "no pane was shown yet" }));
    swap(given, ...(held.given.length ? [table(["seen", "stage", "output", "row"], held.given.slice(-60).reverse().map((row) =>
      [clock(row.now), `${row.stage + 1}`, row.output, row.text]), { className: "tall", caption: "Rows that stages gave, newest first" })] : []));
    if (chosen === null) detail.replaceChildren(html("p", { class: "empty" }, "Choose a window to see its panes, and why they came."));
  }

  async function pick(number, one) {
    const rows = one.panes.map((pane) => [`pane ${pane.index}`, pane.text, timing(pane.timing, pane.op), clock(pane.now, true),
      pane.batch, pane.final ? "final" : ""]);
    const why = html("ol", { class: "why", tabindex: 0, "aria-label": "why" });
    detail.replaceChildren(html("h3", {}, `${key}: ${between(one.start, one.end)}`),
      table(["pane", "answer", "kind", "shown at", { number: "batch" }, ""], rows, { caption: many(rows.length, "pane") + " kept" }),
      html("h3", {}, "Why"), why);
    if (detail.getBoundingClientRect().top > innerHeight * 0.7) detail.scrollIntoView({ block: "start" });
    tell(why, { stage: number, key, start: word(one.start), end: word(one.end) });
  }

  return { title: "Windows", update: (anew) => fill(anew), element: html("div", {}, html("h2", {}, "Windows and panes of a key"),
    html("div", { class: "tools" }, html("label", { for: "key" }, "key ", field), known, stageLabel),
    html("div", { class: "split" }, list, detail), given) };
}

const word = (time) => (time === Infinity ? "+inf" : time === -Infinity ? "-inf" : String(time));

// Why, in the words that the server has; or why it cannot be said.
export async function tell(list, question) {
  swap(list, html("li", {}, "asking"));
  try {
    const answer = await (await fetch(`why.json?${new URLSearchParams(question)}`)).json();
    const { error } = answer;
    const lines = error ? [error.what, error.why, error.instead] : answer.lines;
    const made = error ? [] : [html("li", { class: "made-of" }, coded(answer.made_of))];
    swap(list, ...made, ...lines.map((line) => html("li", { class: line.startsWith("  ") ? "deeper" : null }, line.trim())));
  } catch (error) {
    swap(list, html("li", {}, "the dashboard does not answer"));
  }
}

function byWindow(panes) {
  const found = new Map();
  for (const pane of panes) {
    const name = `${pane.start} ${pane.end}`;
    if (!found.has(name)) found.set(name, { name, start: pane.start, end: pane.end, panes: [] });
    found.get(name).panes.push(pane);
  }
  return [...found.values()].sort((a, b) => b.start - a.start || b.end - a.end);
}
