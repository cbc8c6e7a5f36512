// The dots of the plane: shapes while they are few, pixels when they are many; what was late or unusable is always a shape.

import { BAD, COUNTED, GONE, LATE, LIMITS } from "./held.js";

const SHAPED = 4_000; // dots in sight that are drawn as shapes; more are pixels
const MARKED = 2_000; // late and unusable ones that are drawn as shapes whatever their number

function shape(ctx, fate, kind, at, up) {
  const r = 3.6;
  ctx.beginPath();
  if (fate === LATE) {
    ctx.moveTo(at - r, up - r); ctx.lineTo(at + r, up + r); ctx.moveTo(at - r, up + r); ctx.lineTo(at + r, up - r);
    ctx.stroke();
    return;
  }
  if (fate === BAD) {
    ctx.strokeRect(at - 4.5, up - 4.5, 9, 9);
    ctx.fillRect(at - 0.9, up - 3, 1.8, 3.6);
    ctx.fillRect(at - 0.9, up + 1.4, 1.8, 1.6);
    return;
  }
  if (kind % 4 === 0) ctx.arc(at, up, r - 0.4, 0, 7);
  else if (kind % 4 === 1) { ctx.moveTo(at, up - r); ctx.lineTo(at + r, up); ctx.lineTo(at, up + r); ctx.lineTo(at - r, up); }
  else if (kind % 4 === 2) { ctx.moveTo(at, up - r); ctx.lineTo(at + r, up + r - 1); ctx.lineTo(at - r, up + r - 1); }
  else ctx.rect(at - r + 1, up - r + 1, 2 * r - 2, 2 * r - 2);
  ctx.fill();
}

// Dots into a picture of pixels: a hundred thousand of them take a few milliseconds.
class Pixels {
  constructor() {
    this.canvas = document.createElement("canvas");
  }

  draw(ctx, dots, wanted, colour, view, box, ratio) {
    const width = Math.max(1, Math.round((box.right - box.left) * ratio));
    const height = Math.max(1, Math.round((box.bottom - box.top) * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height || !this.image) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.ctx = this.canvas.getContext("2d");
      this.image = this.ctx.createImageData(width, height);
      this.cells = new Uint32Array(this.image.data.buffer);
    }
    this.cells.fill(0);
    const size = Math.round((wanted.length < 20_000 ? 3 : 2) * ratio);
    const { cells } = this;
    const { time, now } = dots;
    const across = width / (view.right - view.left);
    const up = height / (view.top - view.bottom);
    for (let place = 0; place < wanted.length; place += 1) {
      const at = wanted[place];
      const left = Math.min(Math.floor((time[at] - view.left) * across), width - size);
      const top = Math.min(Math.floor((view.top - now[at]) * up), height - size);
      for (let row = top; row < top + size; row += 1) {
        for (let cell = row * width + left; cell < row * width + left + size; cell += 1) cells[cell] = colour;
      }
    }
    this.ctx.putImageData(this.image, 0, 0);
    ctx.drawImage(this.canvas, box.left, box.top, box.right - box.left, box.bottom - box.top);
  }
}

const pixels = new Pixels();

function packed(ctx, colour) {
  ctx.fillStyle = colour;
  const hex = ctx.fillStyle.slice(1); // the browser gives #rrggbb
  const [r, g, b] = [0, 2, 4].map((from) => parseInt(hex.slice(from, from + 2), 16));
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// Which dots are in sight; those left of it are shown at the edge, and those without a time in front of it.
const order = new Uint32Array(LIMITS.dots);

export function inSight(dots, view, stage, key) {
  let found = 0;
  const marked = [];
  for (let at = 0; at < dots.count; at += 1) {
    const now = dots.now[at];
    const fate = dots.fate[at];
    if (now < view.bottom || now > view.top || fate === GONE || (key !== null && dots.key[at] !== key)) continue;
    if (fate === COUNTED) {
      const time = dots.time[at];
      if (time >= view.left && time <= view.right) order[found++] = at;
    } else if (fate === BAD || dots.stage[at] === stage) marked.push(at);
  }
  return { counted: order.subarray(0, found), marked: marked.slice(-MARKED) };
}

export function dotsOf(ctx, look, dots, seen, view, box, to, ratio) {
  ctx.lineWidth = 1.8;
  if (seen.counted.length > SHAPED) pixels.draw(ctx, dots, seen.counted, packed(ctx, look.dot), view, box, ratio);
  else {
    ctx.fillStyle = look.dot;
    for (const at of seen.counted) shape(ctx, COUNTED, dots.origin[at], to.x(dots.time[at]), to.y(dots.now[at]));
  }
  for (const at of seen.marked) {
    const time = dots.time[at];
    const left = Number.isFinite(time) ? Math.min(Math.max(to.x(time), box.left + 6), box.right - 6) : box.left + 8;
    ctx.strokeStyle = ctx.fillStyle = dots.fate[at] === LATE ? look.late : look.bad;
    shape(ctx, dots.fate[at], 0, left, to.y(dots.now[at]));
  }
}
