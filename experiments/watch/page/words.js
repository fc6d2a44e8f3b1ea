// SPDX-License-Identifier: MIT
// Figures as people read them. The page's text is made of text nodes alone: a name stays a name.

export function byId(name) { return document.getElementById(name); }

export function element(tag, { text, className, ...rest } = {}, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(rest)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function bytes(value) {
  if (value < 1000) return `${value} B`;
  if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e4 ? 1 : 0)} KB`;
  if (value < 1e9) return `${(value / 1e6).toFixed(value < 1e7 ? 2 : 1)} MB`;
  return `${(value / 1e9).toFixed(2)} GB`;
}

export function ms(value) { return `${value.toFixed(value < 100 ? 1 : 0)} ms`; }
export function mbps(value) { return value === null ? "–" : `${value.toFixed(value < 10 ? 2 : 1)} Mbit/s`; }
export function seconds(value) { return value < 1 ? `${(1000 * value).toFixed(0)} ms` : `${value.toFixed(value < 10 ? 2 : 1)} s`; }
export function count(value) { return value.toLocaleString("en"); }
export function some(value, one, more = `${one}s`) { return `${count(value)} ${value === 1 ? one : more}`; }

export function left(value) {
  if (value < 90) return `${value.toFixed(0)} s`;
  const minutes = Math.round(value / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

// Sets what is not so yet: a screen that stays as it is costs nothing, and a selection stays.
export function put(place, text) { if (place.textContent !== text) place.textContent = text; }
