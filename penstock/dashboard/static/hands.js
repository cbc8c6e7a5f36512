// What hands do to the plane: one finger or the mouse drags it, two fingers zoom, so do the wheel and a double click;
// arrows move it, plus and minus zoom, 0 follows.

import { scales } from "./draw.js";

const KEYS = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };

const apart = ([a, b]) => Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1);
const middle = (points) => ({ x: points.reduce((sum, one) => sum + one.x, 0) / points.length,
  y: points.reduce((sum, one) => sum + one.y, 0) / points.length });

export function handle(plane) {
  const { canvas } = plane;
  const down = new Map();
  let from = null;

  // Whenever a finger comes or goes, what the others do begins anew from what is in sight.
  function begin() {
    from = down.size && plane.view !== null ? { view: { ...plane.view }, points: [...down.values()] } : null;
  }

  function move() {
    const to = scales(from.view, plane.drawn.box);
    const points = [...down.values()];
    const [was, is] = [middle(from.points), middle(points)];
    if (points.length < 2) plane.shift(to.time(was.x) - to.time(is.x), to.now(was.y) - to.now(is.y), from.view);
    else plane.pinch(apart(from.points.slice(0, 2)) / apart(points.slice(0, 2)), was, is, from.view);
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    plane.tip.hidden = true;
    begin();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId) || !event.buttons) return plane.point(event.offsetX, event.offsetY);
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (from !== null && plane.drawn !== null) move();
  });
  for (const gone of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(gone, (event) => {
      down.delete(event.pointerId);
      begin();
    });
  }
  // One finger may scroll the page up and down; two are for the plane alone.
  canvas.addEventListener("touchstart", (event) => { if (event.touches.length > 1) event.preventDefault(); }, { passive: false });
  canvas.addEventListener("pointerleave", () => { plane.tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => plane.zoom(0.5, event.offsetX, event.offsetY));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    plane.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.key in KEYS && plane.view !== null) {
      const [across, up] = KEYS[event.key];
      const { view } = plane;
      plane.shift(across * (view.right - view.left), up * (view.top - view.bottom), view);
    } else if (event.key === "+" || event.key === "=") plane.zoom(1 / 1.5);
    else if (event.key === "-") plane.zoom(1.5);
    else if (event.key === "0" || event.key === "Home") plane.setFollow(true);
    else return;
    event.preventDefault();
  });
}
