// The watermark's line as a handle: to the left the delay grows, to the right it shrinks.

import { svg } from "./making.js";

const UNIT = { seconds: 1_000_000, minutes: 60_000_000 };

// A grip on the line of each plane, and a wide invisible line to catch fingers.
export function grips(panels, control) {
  if (!control) return;
  for (const line of panels.querySelectorAll("svg.plane:not(.sample) .watermark")) {
    const path = line.querySelector("path");
    const length = path.getTotalLength();
    if (!length) continue;
    const label = line.querySelector("text");
    label?.setAttribute("dx", label.getAttribute("text-anchor") === "end" ? -8 : 8);
    const end = path.getPointAtLength(length);
    const arrows = `M${end.x - 3} ${end.y - 3}l-3 3l3 3M${end.x + 3} ${end.y - 3}l3 3l-3 3`;
    const grip = svg("g", { class: "grip" }, svg("title", {}, `drag: ${control.label}`));
    grip.append(svg("circle", { cx: end.x, cy: end.y, r: 9 }), svg("path", { class: "arrows", d: arrows }));
    line.append(svg("path", { class: "catch", d: path.getAttribute("d") }), grip);
  }
}

function bounded(control, wanted) {
  const stepped = control.low + Math.round((wanted - control.low) / control.step) * control.step;
  return Math.min(Math.max(stepped, control.low), control.high);
}

// Listens once; `lesson` says which one is open, and the slider of its control is moved as if by hand.
export function draggable(panels, lesson) {
  let held = null;
  panels.addEventListener("pointerdown", (event) => {
    const line = event.target.closest?.("svg.plane .watermark");
    const control = line && event.button === 0 && dragged(lesson());
    if (!control) return;
    const picture = line.closest("svg");
    const zoom = picture.viewBox.baseVal.width / picture.getBoundingClientRect().width;
    const input = document.getElementById(`c-${control.name}`);
    held = { control, input, from: event.clientX, value: Number(input.value),
      each: (Number(picture.dataset.perPixel) * zoom) / UNIT[control.unit] };
    document.body.classList.add("dragging");
    event.preventDefault();
  });
  addEventListener("pointermove", (event) => {
    if (!held) return;
    const wanted = bounded(held.control, held.value - (event.clientX - held.from) * held.each);
    if (wanted === Number(held.input.value)) return;
    held.input.value = wanted;
    held.input.dispatchEvent(new Event("input"));
  });
  for (const end of ["pointerup", "pointercancel"]) {
    addEventListener(end, () => {
      held = null;
      document.body.classList.remove("dragging");
    });
  }
}

export function dragged(lesson) {
  return lesson?.controls.find((control) => control.name === lesson.dragged);
}
