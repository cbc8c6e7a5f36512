// Late and quarantined rows, with their causes: samples of them, and how many there were of all.

import { between, clock, count, html, many, span, swap, table } from "./making.js";
import { tell } from "./windows.js";

export function late(held) {
  const said = html("p", { class: "lead" });
  const lists = { late: html("div"), bad: html("div") };
  const why = html("ol", { class: "why", tabindex: 0, "aria-label": "why it was late", "aria-live": "polite" });
  const asked = html("section", { hidden: "", "aria-label": "Why" }, html("h3", {}, "Why it was late"), why);
  let before = -1;

  function ask(row) {
    asked.hidden = false;
    tell(why, { stage: row.stage ?? 0, event: `${row.partition}/${row.offset}` });
    asked.scrollIntoView({ block: "nearest" });
  }

  function update(anew) {
    if (before === held.heard && !anew) return;
    before = held.heard;
    const seen = held.standing?.overview;
    if (seen) {
      said.textContent = `${many(seen.late, "row")} came when no window of theirs took corrections any more, ` +
        `and ${many(seen.quarantined, "row")} could not be used. None is lost: each was written to its sink, or is kept under the ` +
        `checkpoint. Of the last ten minutes' events ${share(seen.late_share)} were late and ${share(seen.quarantined_share)} quarantined.`;
    }
    swap(lists.late, table(["seen", "why", "key", "happened", { number: "behind W" }, "windows it missed", "row", "read from"],
      [...held.late].reverse().slice(0, 100).map((row) => [clock(row.now),
        html("button", { type: "button", "data-name": `${row.partition} ${row.offset}`, "aria-label": `why was offset ${row.offset} of ${row.partition} late?`, onclick: () => ask(row) }, "Why?"),
        row.key, clock(row.event_time, true), span(row.late_by),
        (row.windows ?? []).map(([start, end]) => between(start, end)).join(", ") || "–", row.text,
        `${row.partition}, offset ${row.offset}`]),
      { className: "tall stack", caption: "Late rows, newest first", empty: "no late row was seen" }));
    swap(lists.bad, table(["seen", "why it could not be used", "step", "row", "read from"],
      [...held.bad].reverse().slice(0, 100).map((row) => [clock(row.now), row.why, row.step ?? "", html("code", {}, row.text),
        `${row.partition}, offset ${count(row.offset)}`]),
      { className: "tall stack", caption: "Quarantined rows, newest first", empty: "every row could be used" }));
  }

  return { title: "Late", update, element: html("div", {}, html("h2", {}, "Late and quarantine"), said, lists.late, asked, lists.bad,
    html("p", { class: "hint" }, "Samples: up to 16 of a batch. All quarantined rows: ", html("code", {}, "penstock quarantine list CHECKPOINT"))) };
}

const share = (value) => (value === 0 ? "none" : value < 0.0001 ? "less than 0.01 %" : `${(100 * value).toFixed(2)} %`);
