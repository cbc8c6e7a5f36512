// A triangle of three goals: each shape reaches as far into a corner as it is good at it.

import { html, svg } from "./making.js";

const DASHES = ["", "7 4", "2 3", "10 3 2 3", "1 4"];
const TURNS = [-90, 30, 150].map((degrees) => (degrees * Math.PI) / 180);

// The first shape is the reader's own; the others are there to compare it with.
const kind = (number) => (number ? `shape c${(number - 1) % 4}` : "shape own");

export function drawTriangle(panel, width) {
  const wide = Math.min(width, 460);
  const height = Math.round(wide * 0.72);
  const far = (height - 56) / 1.5;
  const middle = { x: wide / 2, y: 26 + far };
  const point = (turn, share) =>
    `${(middle.x + Math.cos(turn) * far * share).toFixed(1)},${(middle.y + Math.sin(turn) * far * share).toFixed(1)}`;
  const outline = (shares) => TURNS.map((turn, number) => point(turn, shares[number])).join(" ");
  const percent = (shares) => shares.map((one) => `${Math.round(one * 100)} %`).join(", ");
  const told = panel.shapes.map(([name, shares]) => `${name} ${percent(shares)}`);
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${height}`, width: wide, height, role: "img", class: "triangle",
    "aria-label": `${panel.title}; ${panel.corners.join(", ")}: ${told.join("; ")}` });
  for (const share of [1 / 3, 2 / 3, 1]) {
    picture.append(svg("polygon", { class: "grid", points: outline([share, share, share]) }));
  }
  panel.corners.forEach((name, number) => {
    const [x, y] = point(TURNS[number], 1).split(",").map(Number);
    const anchor = ["middle", "end", "start"][number];
    const place = number ? { x: x + (number === 1 ? 30 : -30), y: y + 18 } : { x, y: y - 8 };
    picture.append(svg("text", { ...place, "text-anchor": anchor, class: "corner" }, name));
  });
  panel.shapes.forEach(([, shares], number) => {
    const points = outline(shares.map((one) => 0.04 + one * 0.96));
    picture.append(svg("polygon", { class: kind(number), points, "stroke-dasharray": DASHES[number] || null }));
  });
  const keys = panel.shapes.map(([name], number) => {
    const line = svg("path", { class: kind(number), d: "M0 5H30", "stroke-dasharray": DASHES[number] || null });
    const sample = svg("svg", { width: 30, height: 10, class: "triangle", "aria-hidden": "true" }, line);
    return html("li", {}, sample, ` ${name}`);
  });
  return html("div", {}, picture, html("ul", { class: "keys" }, ...keys));
}
