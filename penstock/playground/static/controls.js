// The controls of a lesson: made from what the engine says it has.

import { html } from "./making.js";

function slider(control, value, changed) {
  const shown = html("output", { for: `c-${control.name}` }, said(control, value));
  const input = html("input", { type: "range", id: `c-${control.name}`, name: control.name, min: control.low,
    max: control.high, step: control.step, value, "aria-valuetext": said(control, value) });
  input.addEventListener("input", () => {
    shown.textContent = said(control, input.value);
    input.setAttribute("aria-valuetext", shown.textContent);
    changed(control.name, Number(input.value));
  });
  return [html("label", { for: input.id }, control.label), input, shown];
}

function said(control, value) {
  const unit = Number(value) === 1 ? control.unit.replace(/^([a-z]+)s$/, "$1") : control.unit; // one minute, not minutes
  return `${value} ${unit}`.trim();
}

function choice(control, value, changed) {
  const options = control.options.map(([word, text]) =>
    html("option", { value: word, selected: word === value ? "" : null }, text));
  const input = html("select", { id: `c-${control.name}`, name: control.name }, ...options);
  input.addEventListener("change", () => changed(control.name, input.value));
  return [html("label", { for: input.id }, control.label), input];
}

function word(control, value, changed) {
  const input = html("input", { type: "text", id: `c-${control.name}`, name: control.name, maxlength: control.longest,
    value, autocomplete: "off" });
  input.addEventListener("input", () => changed(control.name, input.value));
  return [html("label", { for: input.id }, control.label), input];
}

const MADE = { slider, choice, word };

export function drawControls(into, controls, values, changed) {
  into.replaceChildren(...controls.map((control) =>
    html("div", { class: `control ${control.kind}` }, ...MADE[control.kind](control, values[control.name], changed))));
}
