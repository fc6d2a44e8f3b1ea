// SPDX-License-Identifier: MIT
// Lines over time on a canvas, in the page's own colours.

const LEFT = 46, BOTTOM = 18, TOP = 6, RIGHT = 6;
export const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

export function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
export function ofPipe(number) { return { colour: `--p${number % 8}`, dash: DASHES[(number >> 3) % DASHES.length] }; }

// A round number not below `value`.
export function nice(value) {
  if (!(value > 0)) return 1;
  const ten = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((it) => it * ten >= value * 0.999) * ten;
}

// Between two times that are written.
function pace(seconds) {
  const ten = 10 ** Math.floor(Math.log10(seconds));
  return [1, 2, 5, 10].find((it) => it * ten >= seconds * 0.999) * ten;
}

function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  const width = Math.round(box.width * ratio), height = Math.round(box.height * ratio);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  return { pen, width: box.width, height: box.height };
}

function axes(pen, place, top, unit, from, until, zero) {
  pen.fillStyle = colour("--soft");
  pen.strokeStyle = colour("--line");
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const share of [0, 0.5, 1]) {
    const y = place.y(top * share);
    pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(place.right, y); pen.stroke();
    const text = String(Number((top * share).toPrecision(3)));
    pen.fillText(share === 1 ? `${text}` : text, LEFT - 5, share === 1 ? y + 4 : y);
  }
  pen.textAlign = "left";
  pen.fillText(unit, LEFT + 4, place.y(top) + 8);
  pen.textBaseline = "alphabetic";
  const step = pace((until - from) / 6);
  for (let tick = Math.ceil((from - zero) / step) * step; zero + tick <= until; tick += step) {
    const x = place.x(zero + tick);
    pen.textAlign = x > place.right - 30 ? "right" : "center";
    pen.fillText(`${Number(tick.toPrecision(6))} s`, x, place.bottom + 14);
    pen.beginPath(); pen.moveTo(x, place.bottom); pen.lineTo(x, place.bottom + 3); pen.stroke();
  }
}

// `lines`: {points: [[time, value or null], ...], colour, dash, width, area, steps}. `bands`: times with a colour behind.
export function draw(canvas, { from, until, zero, lines, unit, bands = [], bars = null, least = 0 }) {
  const { pen, width, height } = prepared(canvas);
  if (!width || !height) return;
  let most = least;
  for (const line of lines) for (const [time, value] of line.points) if (value !== null && time >= from && value > most) most = value;
  for (const [, value] of bars?.points ?? []) if (value > most) most = value;
  const top = nice(most), right = width - RIGHT, bottom = height - BOTTOM;
  const place = {
    right, bottom,
    x: (time) => LEFT + ((time - from) / (until - from)) * (right - LEFT),
    y: (value) => bottom - (Math.min(value, top) / top) * (bottom - TOP),
  };
  pen.save();
  pen.beginPath(); pen.rect(LEFT, 0, right - LEFT + 1, height); pen.clip();
  for (const band of bands) {
    pen.fillStyle = colour(band.colour);
    pen.globalAlpha = 0.18;
    const x = Math.max(LEFT, place.x(band.from));
    pen.fillRect(x, TOP, Math.max(1, place.x(band.until) - x), bottom - TOP);
  }
  pen.globalAlpha = 1;
  pen.restore();
  axes(pen, place, top, unit, from, until, zero);
  pen.save();
  pen.beginPath(); pen.rect(LEFT, 0, right - LEFT + 1, height); pen.clip();
  if (bars) {
    pen.fillStyle = colour(bars.colour);
    const each = Math.max(2, (right - LEFT) / 120);
    for (const [time, value] of bars.points) if (value > 0) pen.fillRect(place.x(time) - each / 2, place.y(value), each, bottom - place.y(value));
  }
  for (const line of lines) stroke(pen, place, line, bottom);
  pen.restore();
}

function stroke(pen, place, line, bottom) {
  pen.strokeStyle = pen.fillStyle = colour(line.colour);
  pen.lineWidth = line.width ?? 1.5;
  pen.lineJoin = "round";
  pen.setLineDash(line.dash ?? []);
  pen.beginPath();
  let pending = false, first = null, last = null;
  for (const [time, value] of line.points) {
    if (value === null) { pending = false; continue; }
    const x = place.x(time), y = place.y(value);
    if (pending) { if (line.steps) pen.lineTo(x, last[1]); pen.lineTo(x, y); } else pen.moveTo(x, y);
    first ??= [x, y];
    last = [x, y];
    pending = true;
  }
  pen.stroke();
  pen.setLineDash([]);
  if (line.area && first) {
    pen.lineTo(last[0], bottom); pen.lineTo(first[0], bottom); pen.closePath();
    pen.globalAlpha = 0.15; pen.fill(); pen.globalAlpha = 1;
  }
}

// A row for each configuration, a dot for each run, a stroke at the median.
export function strips(canvas, rows, unit) {
  const wide = canvas.getBoundingClientRect().width > 560, each = wide ? 22 : 34;
  canvas.style.height = `${rows.length * each + 24}px`;
  const { pen, width } = prepared(canvas);
  const left = wide ? Math.min(300, width * 0.4) : 8;
  const values = rows.flatMap((row) => row.values).filter((it) => it !== null);
  const top = nice(Math.max(0, ...values)), x = (value) => left + (value / top) * (width - left - 12);
  rows.forEach((row, number) => {
    const y = number * each + (wide ? 11 : 24);
    pen.strokeStyle = colour("--line");
    pen.beginPath(); pen.moveTo(left, y); pen.lineTo(width - 12, y); pen.stroke();
    pen.fillStyle = colour(row.values.length ? "--ink" : "--soft");
    pen.textBaseline = wide ? "middle" : "bottom"; pen.textAlign = "left";
    pen.fillText(fitted(pen, row.label, wide ? left - 12 : width - 16), wide ? 0 : left, wide ? y : y - 6);
    pen.fillStyle = colour("--p0");
    pen.globalAlpha = 0.55;
    for (const value of row.values) { pen.beginPath(); pen.arc(x(value), y, 3, 0, 7); pen.fill(); }
    pen.globalAlpha = 1;
    if (row.values.length) {
      const sorted = [...row.values].sort((a, b) => a - b), half = sorted.length / 2;
      const median = sorted.length % 2 ? sorted[half - 0.5] : (sorted[half - 1] + sorted[half]) / 2;
      pen.fillStyle = colour("--ink"); pen.fillRect(x(median) - 1, y - 7, 2, 14);
    }
  });
  pen.fillStyle = colour("--soft"); pen.textBaseline = "alphabetic";
  for (const share of [0, 0.5, 1]) {
    pen.textAlign = share === 1 ? "right" : share ? "center" : "left";
    pen.fillText(`${Number((top * share).toPrecision(3))}${share === 1 && unit ? ` ${unit}` : ""}`, x(top * share), rows.length * each + 16);
  }
}

function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > room) end--;
  return `${text.slice(0, end)}…`;
}
