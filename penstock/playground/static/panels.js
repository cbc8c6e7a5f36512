// Everything that is shown beside the plane: tables, lines, bars and a log, as they stood at a step.

import { drawBars, drawLines, forgetCharts } from "./charts.js";
import { html, svg } from "./making.js";
import { drawPlane } from "./plane.js";
import { drawTriangle } from "./triangle.js";

function table(panel, step) {
  const newest = Math.max(...panel.rows.filter((row) => row.step <= step).map((row) => row.step));
  const rows = panel.rows.filter((row) => (panel.latest ? row.step === newest : row.step <= step));
  const head = html("tr", {}, ...panel.columns.map((name) => html("th", { scope: "col" }, name)));
  const body = rows.map((row) => {
    const fresh = !panel.latest && row.step === step && panel.rows.some((one) => one.step !== step);
    return html("tr", { class: fresh ? "fresh" : null }, ...row.cells.map((cell) => html("td", { class: cell.length < 16 ? "short" : null }, cell)));
  });
  if (!body.length) body.push(html("tr", {}, html("td", { colspan: panel.columns.length }, "nothing yet")));
  const made = html("table", {}, html("thead", {}, head), html("tbody", {}, ...body));
  // Rows that come step after step: the newest are in sight.
  const grows = !panel.latest && new Set(panel.rows.map((row) => row.step)).size > 1;
  const box = { class: grows ? "scroll grows" : "scroll", tabindex: "0", role: "region", "aria-label": panel.title };
  return html("div", box, made);
}

function lane(one) {
  const cells = one.records.map(([text, state], offset) => {
    const here = one.pointers.filter(([, at]) => at === offset).map(([name]) => name);
    const marks = here.map((name) => html("span", { class: "pointer" }, `▲ ${name}`));
    return html("li", { class: `record ${state}` }, html("span", { class: "offset" }, offset), html("b", {}, text),
      html("small", {}, state), ...marks);
  });
  const end = one.pointers.filter(([, at]) => at >= one.records.length).map(([name]) => name);
  const marks = end.map((name) => html("span", { class: "pointer" }, `▲ ${name}`));
  cells.push(html("li", { class: "record next" }, html("span", { class: "offset" }, one.records.length),
    html("small", {}, "next"), ...marks));
  return html("div", { class: "lane" }, html("h4", {}, one.name),
    html("ol", { class: "records", tabindex: "0", "aria-label": one.name }, ...cells));
}

const DRAWN = {
  plane: (panel, scene, step, width) => drawPlane(panel, scene.steps, step, width),
  table: (panel, scene, step) => table(panel, step),
  lines: (panel, scene, step, width) => drawLines(panel, step, width),
  bars: (panel, scene, step, width) => drawBars(panel, step, width),
  triangle: (panel, scene, step, width) => drawTriangle(panel, width),
  log: (panel, scene, step) => html("div", {}, ...panel.frames[step].map(lane)),
};

const LEGEND = [
  ["counted", "an event"], ["late", "late: no window takes it"], ["quarantined", "quarantined"],
  ["W", "W, the watermark"], ["early", "early pane …"], ["on_time", "on-time pane ✓"], ["late-pane", "late pane +"],
  ["withdrawn", "withdrawn −"],
];

function sample(kind) {
  const picture = svg("svg", { width: 22, height: 14, class: "plane sample", "aria-hidden": "true" });
  if (kind === "counted") picture.append(svg("g", { class: "dot counted" }, svg("circle", { cx: 11, cy: 7, r: 4.5 })));
  else if (kind === "late") picture.append(svg("g", { class: "dot late" }, svg("path", { d: "M7 3L15 11M7 11L15 3" })));
  else if (kind === "quarantined") {
    picture.append(svg("g", { class: "dot quarantined" }, svg("rect", { x: 6, y: 2, width: 10, height: 10 }),
      svg("text", { x: 11, y: 11, "text-anchor": "middle" }, "!")));
  } else if (kind === "W") picture.append(svg("g", { class: "watermark" }, svg("path", { d: "M2 12H10V2H20" })));
  else {
    const name = kind === "late-pane" ? "late" : kind === "withdrawn" ? "on_time withdrawn" : kind;
    picture.append(svg("g", { class: `pane ${name}` }, svg("rect", { x: 1, y: 1, width: 20, height: 12, rx: 2 })));
  }
  return picture;
}

// Which signs are on these planes, at any step.
function used(panels) {
  const kinds = new Set();
  for (const panel of panels) {
    panel.plane.dots.forEach((dot) => kinds.add(dot.fate));
    for (const pane of panel.plane.panes) {
      const timing = pane.timing === "late" ? "late-pane" : pane.timing;
      kinds.add(pane.op < 0 ? "withdrawn" : timing);
    }
    if (panel.across === "event" && panel.line) kinds.add("W");
  }
  return kinds;
}

function legend(panels) {
  const kinds = used(panels);
  const kept = LEGEND.filter(([kind]) => kinds.has(kind));
  const signs = kept.map(([kind, text]) => html("li", {}, sample(kind), ` ${text}`));
  return html("ul", { class: "legend", "aria-label": "Signs" }, ...signs);
}

// Draws all panels of a scene as they stood at a step.
export function drawPanels(into, scene, step) {
  const planes = scene.panels.filter((panel) => panel.kind === "plane");
  into.className = planes.length === 3 ? "many" : planes.length > 1 ? "several" : "";
  const kept = [...into.querySelectorAll("[tabindex]")].findIndex((one) => one === document.activeElement);
  const sections = scene.panels.map((panel) => {
    const kind = `panel ${panel.kind}${panel.line === false ? " unlined" : ""}`;
    return html("section", { class: kind }, html("h3", {}, panel.title));
  });
  forgetCharts();
  into.replaceChildren(...sections);
  scene.panels.forEach((panel, number) => {
    const width = Math.max(Math.floor(sections[number].clientWidth), 220);
    sections[number].append(DRAWN[panel.kind](panel, scene, step, width));
    if (panel.note) sections[number].append(html("p", { class: "note" }, panel.note));
  });
  if (planes.length) into.append(legend(planes));
  for (const box of into.querySelectorAll(".scroll.grows")) box.scrollTop = box.scrollHeight;
  if (kept >= 0) into.querySelectorAll("[tabindex]")[kept]?.focus();
}
