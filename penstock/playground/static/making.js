// How elements are made: text only ever as text, attributes by name, nothing parsed.

const SVG = "http://www.w3.org/2000/svg";

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return element;
}

export function html(tag, attributes = {}, ...children) {
  return made(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return made(document.createElementNS(SVG, tag), attributes, children);
}

const DAY = 86_400_000_000;

function two(number) {
  return String(number).padStart(2, "0");
}

// A time of day from microseconds; seconds only where they are asked for or there are any.
export function clock(instant, seconds = false) {
  if (instant === "-inf" || instant === "+inf") return instant === "-inf" ? "−∞" : "+∞";
  const whole = Math.floor((((instant % DAY) + DAY) % DAY) / 1_000_000);
  const rest = whole % 60;
  const day = Math.floor(instant / DAY);
  const text = `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}`;
  return (day ? `+${day} d ` : "") + text + (seconds || rest ? `:${two(rest)}` : "");
}
