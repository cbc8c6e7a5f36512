// What the signs of the plane mean, and what a pane that is pointed at says.

import { TIMINGS } from "./held.js";
import { WORD, between, clock, html } from "./making.js";

export function paneWords(panes, one) {
  const said = [html("strong", {}, one.count > 1 ? `${one.count} keys` : one.key), one.count > 1 ? `such as ${one.key}: ${one.text}` : one.text,
    `window ${between(one.start, one.end)}`,
    `${one.op < 0 ? "withdrawn" : WORD[TIMINGS[one.kind]]}, shown ${clock(one.now, true)}, pane ${panes.index[one.at]}`];
  return said.map((text) => html("div", {}, text));
}

export function legend() {
  const item = (sign, name, text) => html("li", {}, html("span", { class: `sign ${name}`, "aria-hidden": "true" }, sign), text);
  return html("ul", { class: "legend" }, item("●", "dot", "event"), item("✕", "late", "late event"), item("!", "bad", "unusable event"),
    item("━", "mark", "watermark"), item("…", "pane early", "early pane"), item("✓", "pane on_time", "on time"),
    item("+", "pane late", "late pane"), item("┄", "ideal", "seen the moment it happened"));
}
