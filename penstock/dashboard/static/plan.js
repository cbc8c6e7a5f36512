// The plan as a graph: sources, stages and sinks, and the ways of rows between them.

import { html, svg } from "./making.js";

const KIND = { source: "source", stage: "stage", output: "sink" };

export function plan(held) {
  const area = html("div", { class: "graph" }, html("p", { class: "empty" }, "reading the plan"));
  const said = html("p", { class: "lead" });
  let read = null;

  async function load() {
    if (read !== null && read !== "none") return;
    try {
      read = (await (await fetch("plan.json")).json()) ?? "none";
    } catch {
      read = "none";
    }
    if (read === "none") area.replaceChildren(html("p", { class: "empty" }, "This run has written no plan beside its checkpoint; one is written when it starts."));
    else drawn();
  }

  function drawn() {
    const deepest = Math.max(...read.nodes.map((one) => one.depth));
    const boxes = new Map();
    const columns = Array.from({ length: deepest + 1 }, (_, depth) => html("div", { class: "depth" },
      read.nodes.filter((one) => one.depth === depth).map((one) => {
        const made = node(one);
        boxes.set(one.id, made);
        return made;
      })));
    const lines = svg("svg", { class: "ways", "aria-hidden": "true" });
    area.replaceChildren(lines, ...columns);
    const names = new Map(read.nodes.map((one) => [one.id, one.name]));
    said.textContent = `Delivered ${read.delivery}.`;
    if (read.warnings.length) said.after(html("ul", { class: "warnings" }, read.warnings.map((one) => html("li", {}, one))));
    area.after(html("details", {}, html("summary", {}, "The ways as a list"), html("ul", {}, read.edges.map(([from, to, what]) =>
      html("li", {}, `${names.get(from)} → ${names.get(to)}${what ? ` (${what})` : ""}`)))));
    const join = () => ways(area, lines, boxes, read.edges);
    new ResizeObserver(join).observe(area);
    join();
  }

  return { title: "Plan", update: load, element: html("div", {}, html("h2", {}, "The plan"), said, area) };
}

function node(one) {
  return html("article", { class: `node ${one.kind}` }, html("p", { class: "kind" }, KIND[one.kind]), html("h3", {}, one.name),
    html("dl", {}, one.says.map(([word, text]) => html("div", {}, html("dt", {}, word || " "), html("dd", {}, text)))));
}

function ways(area, lines, boxes, edges) {
  const base = area.getBoundingClientRect();
  lines.setAttribute("width", area.scrollWidth);
  lines.setAttribute("height", area.scrollHeight);
  lines.replaceChildren(...edges.map(([from, to]) => {
    const a = boxes.get(from).getBoundingClientRect();
    const b = boxes.get(to).getBoundingClientRect();
    const beside = b.left >= a.right;
    const x1 = (beside ? a.right : a.left + a.width / 2) - base.left + area.scrollLeft;
    const y1 = (beside ? a.top + Math.min(a.height / 2, 60) : a.bottom) - base.top;
    const x2 = (beside ? b.left : b.left + b.width / 2) - base.left + area.scrollLeft;
    const y2 = (beside ? b.top + Math.min(b.height / 2, 60) : b.top) - base.top;
    const middle = (x1 + x2) / 2;
    const way = beside ? `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2 - 7} ${y2}` : `M${x1} ${y1}L${x2} ${y2 - 7}`;
    const head = beside ? `M${x2 - 8} ${y2 - 5}L${x2} ${y2}L${x2 - 8} ${y2 + 5}Z` : `M${x2 - 5} ${y2 - 8}L${x2} ${y2}L${x2 + 5} ${y2 - 8}Z`;
    return svg("g", {}, svg("path", { d: way, class: "way" }), svg("path", { d: head, class: "head" }));
  }));
}
