// The first page: what needs attention, in words with the cause; then the plane.

import { PlaneBox } from "./plane.js";
import { coded, html, swap } from "./making.js";

const LEVEL = { urgent: ["!!", "urgent"], warning: ["!", "warning"], note: ["i", "to know"] };
const LOOK = { sink: "sinks", stall: "batches", watermark: "partitions", silence: "partitions", idle: "partitions",
  lag: "partitions", log: "partitions", quarantine: "late", kept: "late", late: "late", state: "state",
  hot_key: "state", batches: "batches", replay: "sinks" };

export function overview(held, app) {
  const list = html("div", { class: "concerns" });
  const spoken = html("p", { class: "spoken", role: "status" });
  const open = new Set(); // notes that were opened stay so, though their words change
  app.plane ??= new PlaneBox(held);
  let before = "";
  return {
    title: "Overview",
    element: html("div", {}, html("section", { "aria-labelledby": "attention" },
      html("h2", { id: "attention" }, "What needs attention"), spoken, list),
      html("section", { "aria-labelledby": "plane-head" }, html("h2", { id: "plane-head" }, "The plane"), app.plane.element)),
    update() {
      const told = JSON.stringify([held.standing?.concerns, held.standing?.state, held.standing?.calm, held.standing?.error]);
      if (told !== before) {
        swap(list, ...concerns(held.standing, open));
        const said = summed(held.standing?.concerns ?? []);
        if (said !== spoken.textContent) spoken.textContent = said;
      }
      before = told;
      app.plane.update();
    },
  };
}

// What a screen reader hears when it changes: not every second that passes.
function summed(all) {
  const of = (level) => all.filter((one) => one.level === level).map((one) => one.about.replace("_", " "));
  const said = ["urgent", "warning"].map((level) => (of(level).length ? `${level}: ${of(level).join(", ")}` : ""));
  return said.filter(Boolean).join("; ") || "nothing urgent";
}

function concerns(standing, open) {
  if (standing === null) return [html("p", { class: "quiet" }, "Asking how it stands.")];
  if (standing.state === "starting") {
    return [html("p", { class: "quiet" }, "Spark is being started; the first batch comes in ten to twenty seconds.")];
  }
  if (standing.error) return [html("article", { class: "concern urgent" }, html("p", { class: "what" }, standing.error))];
  if (!standing.concerns.length) {
    const said = standing.calm.charAt(0).toUpperCase() + standing.calm.slice(1);
    return [html("p", { class: "quiet good" }, html("span", { class: "mark", "aria-hidden": "true" }, "✓"), `${said}.`)];
  }
  return standing.concerns.map((one) => (one.level === "note" ? note(one, open) : concern(one)));
}

function concern(one) {
  const [sign, word] = LEVEL[one.level] ?? ["i", one.level];
  return html("article", { class: `concern ${one.level}` },
    html("span", { class: "level" }, html("span", { "aria-hidden": "true", class: "mark" }, sign), word),
    html("div", {}, html("p", { class: "what" }, one.what), cause(one)));
}

// Good to know, and no more: a line, which says the rest when it is asked.
function note(one, open) {
  const [sign, word] = LEVEL.note;
  const name = `${one.about} ${one.what.replace(/[0-9]/g, "")}`;
  const made = html("details", { class: "concern note", open: open.has(name) ? "" : null,
    ontoggle: () => (made.open ? open.add(name) : open.delete(name)) },
  html("summary", {}, html("span", { class: "level" }, html("span", { "aria-hidden": "true", class: "mark" }, sign), word),
    html("span", { class: "what" }, one.what)), cause(one));
  return made;
}

function cause(one) {
  const page = LOOK[one.about];
  return html("div", {}, html("p", { class: "why" }, one.why), html("p", { class: "instead" }, coded(one.instead)),
    page ? html("a", { href: `#/${page}`, class: "look" }, `look at ${page === "late" ? "late and quarantine" : page}`) : null);
}
