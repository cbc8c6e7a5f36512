// The link that reproduces what one sees: lesson, controls and step, in the address after the #.

// The address as it was last read or written here. If it is another one, the reader has gone elsewhere and the page
// will be told so in a moment: until then nothing is written over it.
let known = null;

export function read(lessons) {
  known = location.hash;
  const said = new URLSearchParams(location.hash.slice(1));
  const lesson = lessons.find((one) => one.id === said.get("lesson")) ?? lessons[0];
  const values = {};
  for (const control of lesson.controls) {
    const text = said.get(control.name);
    values[control.name] = text === null ? control.value : accepted(control, text);
  }
  const step = said.get("step");
  return { lesson, values, step: step === null || !/^\d+$/.test(step) ? null : Number(step) };
}

// A value that the control does not have is left as it stands at first.
function accepted(control, text) {
  if (control.kind === "word") return text.slice(0, control.longest);
  if (control.kind === "choice") return control.options.some(([word]) => word === text) ? text : control.value;
  const number = Number(text);
  const inside = Number.isInteger(number) && number >= control.low && number <= control.high;
  return inside && (number - control.low) % control.step === 0 && text.trim() !== "" ? number : control.value;
}

export function write(state, last) {
  if (location.hash !== known) return;
  const said = new URLSearchParams({ lesson: state.lesson.id });
  for (const control of state.lesson.controls) {
    const value = state.values[control.name];
    if (value !== control.value) said.set(control.name, String(value));
  }
  if (state.step !== null && state.step < last) said.set("step", String(state.step));
  history.replaceState(null, "", `#${said}`);
  known = location.hash;
}
