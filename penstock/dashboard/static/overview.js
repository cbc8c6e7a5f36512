// The first page: what needs attention, in words with the cause; then the plane.

import { PlaneBox } from "./plane.js";
import { coded, html } from "./making.js";

const LEVEL = { urgent: ["!!", "urgent"], warning: ["!", "warning"], note: ["i", "to know"] };
const LOOK = { sink: "sinks", stall: "batches", watermark: "partitions", silence: "partitions", idle: "partitions",
  lag: "partitions", log: "partitions", quarantine: "late", kept: "late", late: "late", state: "state",
  hot_key: "state", batches: "batches", replay: "sinks" };

export function overview(held, app) {
  const list = html("div", { class: "concerns", "aria-live": "polite" });
  app.plane ??= new PlaneBox(held);
  let before = "";
  return {
    title: "Overview",
    element: html("div", {}, html("section", { "aria-labelledby": "attention" },
      html("h2", { id: "attention" }, "What needs attention"), list),
      html("section", { "aria-labelledby": "plane-head" }, html("h2", { id: "plane-head" }, "The plane"), app.plane.element)),
    update() {
      const told = JSON.stringify([held.standing?.concerns, held.standing?.state, held.standing?.calm, held.standing?.error]);
      if (told !== before) list.replaceChildren(...concerns(held.standing));
      before = told;
      app.plane.update();
    },
  };
}

function concerns(standing) {
  if (standing === null) return [html("p", { class: "quiet" }, "Asking how it stands.")];
  if (standing.state === "starting") {
    return [html("p", { class: "quiet" }, "Spark is being started; the first batch comes in ten to twenty seconds.")];
  }
  if (standing.error) return [html("article", { class: "concern urgent" }, html("p", { class: "what" }, standing.error))];
  if (!standing.concerns.length) {
    const said = standing.calm.charAt(0).toUpperCase() + standing.calm.slice(1);
    return [html("p", { class: "quiet good" }, html("span", { class: "mark", "aria-hidden": "true" }, "✓"), `${said}.`)];
  }
  return standing.concerns.map((one) => {
    const [sign, word] = LEVEL[one.level] ?? ["i", one.level];
    const page = LOOK[one.about];
    return html("article", { class: `concern ${one.level}` },
      html("span", { class: "level" }, html("span", { "aria-hidden": "true", class: "mark" }, sign), word),
      html("div", {}, html("p", { class: "what" }, one.what), html("p", { class: "why" }, one.why),
        html("p", { class: "instead" }, coded(one.instead)),
        page ? html("a", { href: `#/${page}`, class: "look" }, `look at ${page === "late" ? "late and quarantine" : page}`) : null));
  });
}
