// How elements are made and values are put into words: text only ever as text, nothing parsed.

const SVG = "http://www.w3.org/2000/svg";

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) {
      element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
  }
  return element;
}

export const html = (tag, attributes = {}, ...children) => made(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

// Times are microseconds since 1970; the infinities are words, or the ends of 64 bits.
const FAR = 9.2e18;

export function number(time) {
  if (time === "-inf" || time <= -FAR) return -Infinity;
  return time === "+inf" || time >= FAR ? Infinity : time;
}

const two = (value) => String(value).padStart(2, "0");
const today = () => new Date().toISOString().slice(0, 10);

export function clock(time, parts = false) {
  const at = number(time);
  if (at === null || at === undefined || at === -Infinity) return "none yet";
  if (at === Infinity) return "the end";
  const date = new Date(at / 1000);
  if (Number.isNaN(date.getTime())) return String(at);
  const day = date.toISOString().slice(0, 10);
  const rest = parts ? `.${String(Math.floor((((at % 1e6) + 1e6) % 1e6) / 1e3)).padStart(3, "0")}` : "";
  const said = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}${rest}`;
  return day === today() ? said : `${day} ${said}`;
}

// From one time to another: the day is said once where both are on it.
export function between(start, end) {
  const [from, to] = [clock(start), clock(end)];
  const day = from.slice(0, 11);
  return `${from} to ${day.endsWith(" ") && to.startsWith(day) && to.length > 11 ? to.slice(11) : to}`;
}

// A time of day alone, for axes: seconds only where they matter.
export function tick(time, step) {
  const date = new Date(time / 1000);
  const minutes = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  if (step >= 86_400e6) return date.toISOString().slice(5, 10);
  return step % 60e6 === 0 ? minutes : `${minutes}:${two(date.getUTCSeconds())}`;
}

export function span(length) {
  if (length === null || length === undefined || !(Math.abs(length) < FAR)) return "–";
  const seconds = Math.abs(length) / 1e6;
  const sign = length < 0 ? "−" : "";
  if (seconds < 1) return `${sign}${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${sign}${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${sign}${whole} s`;
  const [large, small, names] = whole < 3600 ? [60, 1, ["min", "s"]] : whole < 86_400 ? [3600, 60, ["h", "min"]]
    : [86_400, 3600, ["d", "h"]];
  const rest = Math.floor((whole % large) / small);
  return `${sign}${Math.floor(whole / large)} ${names[0]}${rest ? ` ${rest} ${names[1]}` : ""}`;
}

export const many = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
export const count = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

export function rough(value) {
  if (!Number.isFinite(value)) return "–";
  for (const [size, sign] of [[1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (value >= size) return `${(value / (sign === " k" ? 1e3 : size)).toFixed(value >= size * 10 ? 0 : 1)}${sign}`;
  }
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, sign] of [[2 ** 30, "GB"], [2 ** 20, "MB"], [1024, "kB"]]) {
    if (value >= size) return `${(value / size).toFixed(1)} ${sign}`;
  }
  return `${value} B`;
}

// A sentence in which what stands between backticks is code.
export const coded = (text) => text.split("`").map((part, place) => (place % 2 ? html("code", {}, part) : part));

export const WORD = { early: "early", on_time: "on time", late: "late" };
export const SIGN = { early: "…", on_time: "✓", late: "+" };

// A pane's timing as a sign and a word, so that nobody needs its colour.
export function timing(kind, op = 1) {
  if (op < 0) return html("span", { class: "timing withdrawn" }, "− withdrawn");
  return html("span", { class: `timing ${kind}` }, `${SIGN[kind] ?? ""} ${WORD[kind] ?? kind}`);
}

// New content in the place of old: where one had scrolled to, and what had the focus, stay as they were.
export function swap(box, ...nodes) {
  const scrolled = [...box.querySelectorAll(".scroll")].map((one) => [one.scrollTop, one.scrollLeft]);
  const had = box.contains(document.activeElement) ? reachable(box).indexOf(document.activeElement) : -1;
  const name = had >= 0 ? document.activeElement.dataset.name : undefined;
  box.replaceChildren(...nodes);
  box.querySelectorAll(".scroll").forEach((one, at) => { [one.scrollTop, one.scrollLeft] = scrolled[at] ?? [0, 0]; });
  if (had < 0) return;
  const now = reachable(box);
  (now.find((one) => name !== undefined && one.dataset.name === name) ?? now[had])?.focus({ preventScroll: true });
}

const reachable = (box) => [...box.querySelectorAll("button, a, summary, [tabindex]")];

export function table(heads, rows, { caption = "", empty = "nothing yet", className = "" } = {}) {
  if (!rows.length) return html("p", { class: "empty" }, empty);
  // A column in which nothing is known says nothing.
  const known = heads.map((_, place) => place === 0 || rows.some((row) => row[place] !== "–"));
  return filled(heads.filter((_, place) => known[place]), rows.map((row) => row.filter((_, place) => known[place])), caption, className);
}

// What is short stays in one line; what is long has room to be read in, however narrow the screen.
function fits(cell) {
  const length = (cell instanceof Node ? cell.textContent : String(cell)).length;
  return length < 30 ? "short" : "long";
}

function filled(heads, rows, caption, className) {
  const head = html("tr", {}, heads.map((one) => {
    const right = typeof one === "object";
    return html("th", { scope: "col", class: right ? "number" : null }, right ? one.number : one);
  }));
  const body = rows.map((row) => html("tr", {}, row.map((cell, place) =>
    html(place === 0 ? "th" : "td", { scope: place === 0 ? "row" : null, "data-head": heads[place].number ?? heads[place],
      class: typeof heads[place] === "object" ? "number" : fits(cell) }, cell))));
  return html("div", { class: `scroll ${className}`, tabindex: 0, role: "region", "aria-label": caption },
    html("table", {}, html("caption", {}, html("span", {}, caption)), html("thead", {}, head), html("tbody", {}, body)));
}
