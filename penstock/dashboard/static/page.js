// The page itself: which page is shown, the head that every one has, and news to whoever is shown.

import { batches } from "./batches.js";
import { Held } from "./held.js";
import { late } from "./late.js";
import { listen } from "./feed.js";
import { clock, html, rough, span } from "./making.js";
import { overview } from "./overview.js";
import { partitions } from "./partitions.js";
import { plan } from "./plan.js";
import { sinks } from "./sinks.js";
import { state } from "./state.js";
import { windows } from "./windows.js";

const PAGES = [["", "Overview", overview], ["windows", "Windows & panes", windows], ["partitions", "Partitions & lag", partitions],
  ["late", "Late & quarantine", late], ["batches", "Batches", batches], ["state", "State & hot keys", state],
  ["sinks", "Sinks", sinks], ["plan", "Plan", plan]];
const STATES = { starting: ["◌", "starting"], running: ["●", "running"], stopped: ["■", "stopped"], finished: ["✓", "finished"],
  failed: ["✕", "failed"], died: ["✕", "died"], unknown: ["?", "elsewhere"], unreadable: ["✕", "unreadable"] };
const LINKS = { live: "● live", lost: "○ connection lost, trying again", closed: "○ ended: open the address that was printed last" };

const held = new Held();
const app = { paused: false };
let made = {};
const by = (id) => document.getElementById(id);
let shown = null;
let waiting = false;

function place() {
  return location.hash.replace(/^#\/?/, "").split("?")[0];
}

function show() {
  const [name, title, make] = PAGES.find(([one]) => one === place()) ?? PAGES[0];
  // A page is made once: what it has drawn is kept for when one comes back to it.
  shown = made[name] ??= make(held, app);
  by("main").replaceChildren(shown.element);
  app.title = title;
  for (const link of by("pages").querySelectorAll("a")) {
    if (link.dataset.page === name) {
      link.setAttribute("aria-current", "page");
      by("pages").parentElement.scrollLeft = link.offsetLeft - 40;
    } else link.removeAttribute("aria-current");
  }
  app.plane.seen = null;
  shown.update(true);
}

function head() {
  const told = held.standing;
  if (told === null) return;
  const [sign, word] = STATES[told.state] ?? ["?", told.state];
  by("name").textContent = told.name ?? "Penstock";
  by("state").textContent = `${sign} ${word}`;
  by("state").className = `badge ${told.state}`;
  by("where").textContent = `Checkpoint ${told.checkpoint}${told.lineage ? `, lineage ${told.lineage.slice(0, 8)}` : ""}`;
  const urgent = told.concerns.filter((one) => one.level === "urgent").length;
  document.title = `${urgent ? `(${urgent}) ` : ""}${app.title} · ${told.name ?? "Penstock"}`;
  const seen = told.overview;
  const figures = seen === null || seen === undefined ? [] : [
    ["events a second", rough(seen.events_per_second)],
    ["watermark", clock(seen.watermark)], ["behind", span(seen.behind)],
    ...(seen.lag === null ? [] : [["lag", rough(seen.lag)]]),
    ["open windows", rough(seen.open_windows)], ["late", rough(seen.late)], ["quarantined", rough(seen.quarantined)]];
  by("figures").replaceChildren(...figures.map(([name, value]) =>
    html("div", {}, html("dt", {}, name), html("dd", {}, value))));
}

// What the stages are called is in the plan, which is there when the first batch is.
async function named() {
  app.named = true;
  try {
    const told = await (await fetch("plan.json")).json();
    app.plane.stageNames = told?.nodes.filter((one) => one.kind === "stage").map((one) => `${one.number + 1}: ${one.name}`);
  } catch { /* then they have numbers alone */ }
}

function news() {
  if (held.heard && !app.named) named();
  if (app.paused || app.pressed || waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (app.paused) return;
    head();
    shown?.update(false);
  });
}

// The checkpoint was made anew: nothing of what was drawn is of this run.
function another() {
  made = {};
  app.named = false;
  app.plane.forget();
  show();
}

// Whether news come; those of a run that has ended with its dashboard come no more.
function linked(what) {
  const over = what !== "live" && ["stopped", "finished", "failed"].includes(held.standing?.state);
  by("link").textContent = over ? "○ ended with the run" : LINKS[what];
  by("link").className = over ? "over" : what;
  document.body.classList.toggle("stale", what !== "live" && !over);
}

function pause() {
  app.paused = !app.paused;
  by("pause").textContent = app.paused ? "Go on" : "Pause";
  by("pause").setAttribute("aria-pressed", String(app.paused));
  if (!app.paused) {
    app.plane.seen = null;
    news();
  }
}

by("pages").append(...PAGES.map(([name, title]) => html("li", {}, html("a", { href: `#/${name}`, "data-page": name }, title))));
by("pause").addEventListener("click", pause);
// While something is pressed nothing is replaced, or the press would be lost.
addEventListener("pointerdown", (event) => { app.pressed = event.target.tagName !== "CANVAS"; });
for (const end of ["pointerup", "pointercancel"]) {
  addEventListener(end, () => {
    app.pressed = false;
    setTimeout(news);
  });
}
addEventListener("hashchange", () => { show(); by("main").focus({ preventScroll: true }); scrollTo(0, 0); });
overview(held, app);
show();
listen(held, { news, another, link: linked });
// What tests look at: how much is held, and the plane's frames.
window.penstock = { held, app };
