// The page: which lesson, which controls, which step; one question to the engine at a time, the newest wins.

import { backend } from "./backend.js";
import { drawControls } from "./controls.js";
import { draggable, dragged, grips } from "./drag.js";
import { read, write } from "./link.js";
import { html } from "./making.js";
import { drawPanels } from "./panels.js";

const at = (id) => document.getElementById(id);
const engine = backend();
let lessons = [];
let state = null;
let scene = null;
let asking = false;
let again = false;
let timer = null;
let by = "";

const lastStep = () => scene.steps.length - 1;

function tell(error) {
  const box = at("error");
  box.hidden = !error;
  if (error?.what) box.textContent = `${error.what}. Why: ${error.why}. Instead: ${error.instead}.`;
  else if (error) box.textContent = String(error.message ?? error);
}

async function ask() {
  press();
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  document.body.setAttribute("aria-busy", "true");
  const slow = setTimeout(() => { at("engine").textContent = engine.starting; }, 400);
  do {
    again = false;
    await answered({ lesson: state.lesson.id, values: { ...state.values } });
  } while (again);
  asking = false;
  clearTimeout(slow);
  at("engine").textContent = state.lesson.model ? "a model: it says below of what" : by;
  document.body.removeAttribute("aria-busy");
}

// One question: what it gives is shown if its lesson is still open; what went wrong is told.
async function answered(wanted) {
  try {
    const given = await engine.play(wanted);
    if (given.error) throw given.error;
    by = given.by ?? engine.name;
    if (wanted.lesson === state.lesson.id) show(given);
  } catch (error) {
    tell(error);
    if (!scene) for (const id of ["panels", "figures", "told"]) at(id).replaceChildren();
  }
}

function show(given) {
  tell(null);
  scene = given;
  at("step").max = lastStep();
  at("code").textContent = given.code;
  const figures = given.figures.map((one) =>
    html("div", {}, html("dt", {}, one.name), html("dd", {}, one.value, html("small", {}, one.note))));
  at("figures").replaceChildren(...figures);
  draw();
  engine.prepare();
}

// The step that is drawn: that of the link or the reader, if this run has so many.
const step = () => Math.min(state.step ?? lastStep(), lastStep());

function draw() {
  if (!scene) return;
  const now = step();
  at("step").value = now;
  at("step").setAttribute("aria-valuetext", scene.steps[now].text);
  at("step-number").textContent = `${now + 1} of ${scene.steps.length}`;
  at("told").textContent = scene.steps[now].text;
  drawPanels(at("panels"), scene, now);
  grips(at("panels"), dragged(state.lesson));
  at("panels").dataset.shows = JSON.stringify([scene.lesson, scene.values]);
  write(state, lastStep());
}

function go(step) {
  if (!scene) return;
  const bound = Math.min(Math.max(step, 0), lastStep());
  state.step = bound === lastStep() ? null : bound;
  draw();
}

function pause() {
  clearInterval(timer);
  timer = null;
  at("play").textContent = "Play";
  at("told").setAttribute("aria-live", "polite");
}

function play() {
  if (timer) {
    pause();
    return;
  }
  if (state.step === null) go(0);
  at("play").textContent = "Pause";
  at("told").setAttribute("aria-live", "off");
  const wait = Math.min(Math.max(12000 / scene.steps.length, 90), 900);
  timer = setInterval(() => {
    go(step() + 1);
    if (state.step === null) pause();
  }, wait);
}

function changed(name, value) {
  pause();
  state.values[name] = value;
  ask();
}

function open() {
  pause();
  const wanted = read(lessons);
  const fresh = !state || state.lesson !== wanted.lesson;
  state = wanted;
  document.title = `${state.lesson.title} · Penstock playground`;
  at("lesson-title").textContent = state.lesson.title;
  at("look").replaceChildren(...state.lesson.look.map((line) => html("li", {}, line)));
  at("model").hidden = !state.lesson.model;
  at("model").textContent = state.lesson.model;
  at("presets").replaceChildren("Presets: ", ...state.lesson.presets.map(preset));
  drawControls(at("controls"), state.lesson.controls, state.values, changed);
  for (const link of at("lessons").querySelectorAll("a")) {
    if (link.dataset.lesson === state.lesson.id) {
      link.setAttribute("aria-current", "page");
      link.closest("nav").scrollLeft = link.offsetLeft - 12;
    } else link.removeAttribute("aria-current");
  }
  if (fresh) scene = null;
  ask();
}

// All controls as a preset sets them: those that it does not name stand as at first.
function whole(one) {
  const firsts = Object.fromEntries(state.lesson.controls.map((control) => [control.name, control.value]));
  return { ...firsts, ...one.values };
}

// Which preset is as the controls stand, if any.
function press() {
  [...at("presets").querySelectorAll("button")].forEach((button, number) => {
    const wanted = Object.entries(whole(state.lesson.presets[number]));
    button.setAttribute("aria-pressed", wanted.every(([name, value]) => state.values[name] === value));
  });
}

function preset(one) {
  const button = html("button", { type: "button" }, one.name);
  button.addEventListener("click", () => {
    state.values = whole(one);
    state.step = null;
    drawControls(at("controls"), state.lesson.controls, state.values, changed);
    pause();
    ask();
  });
  return button;
}

function keys(event) {
  const inside = event.target.closest("input, select, textarea, button, summary, [role=region], .records, pre");
  if (event.ctrlKey || event.metaKey || event.altKey || inside || !scene) return;
  const now = step();
  const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: lastStep() };
  if (event.key === " ") play();
  else if (event.key in moves) {
    pause();
    go(moves[event.key]);
  } else return;
  event.preventDefault();
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    at("link").textContent = "Copied";
  } catch {
    at("link").textContent = "It is in the address bar";
  }
  setTimeout(() => { at("link").textContent = "Copy link"; }, 2000);
}

async function start() {
  try {
    lessons = (await engine.lessons()).lessons;
  } catch (error) {
    tell(error);
    return;
  }
  at("lessons").append(...lessons.map((lesson) =>
    html("li", {}, html("a", { href: `#lesson=${lesson.id}`, "data-lesson": lesson.id }, lesson.title))));
  const moves = { first: () => 0, back: () => step() - 1, next: () => step() + 1, last: lastStep };
  for (const [id, where] of Object.entries(moves)) {
    at(id).addEventListener("click", () => { if (scene) { pause(); go(where()); } });
  }
  at("play").addEventListener("click", () => scene && play());
  at("link").addEventListener("click", copyLink);
  at("step").addEventListener("input", () => { pause(); go(Number(at("step").value)); });
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", open);
  addEventListener("keydown", keys);
  draggable(at("panels"), () => state?.lesson);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
  open();
}

start();
