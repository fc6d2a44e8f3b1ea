// SPDX-License-Identifier: MIT
// The page: which moment of the recording is shown, and what the events of the server do to it.

import { Recording } from "./record.js";
import { Link } from "./link.js";
import { Sweep } from "./sweep.js";
import { View } from "./view.js";
import { byId } from "./words.js";

const FRAME_MS = 100; // between two pictures; with reduced motion a second
const LINES_MOST = 500; // of the proxies' logs
const LOST_AFTER_MS = 12000; // the server says something every 5 s

const still = matchMedia("(prefers-reduced-motion: reduce)");
const view = new View(), sweep = new Sweep(), link = new Link();
const state = {
  recording: new Recording(), run: "", chosen: "", live: false, ahead: 0,
  cursor: 0, following: true, playing: false, moved: true, shown: 0,
};
let source = null, heard = 0;

// --- what the server says ---

function open() {
  source?.close();
  source = new EventSource(state.chosen ? `/events?run=${encodeURIComponent(state.chosen)}` : "/events");
  const on = (name, does, read = JSON.parse) => source.addEventListener(name, (event) => {
    heard = performance.now();
    does(read(event.data));
    state.moved = true;
  });
  source.onopen = () => { heard = performance.now(); connection(true); };
  source.onerror = () => connection(false);
  on("folder", (told) => folder(told));
  on("sweep", (told) => sweep.begins(told));
  on("ended", (told) => { sweep.ended(told); runs(told.kept); });
  on("plots", (told) => sweep.pictures(told));
  on("run", (told) => begins(told));
  for (const who of ["rp", "lp"]) on(who, (records) => state.recording.sides[who].add(records), (lines) => read(who, lines));
  on("said", (told) => said(told));
  on("link", (told) => link.told(told));
  on("trouble", trouble);
}

function trouble(text) {
  byId("trouble").textContent = text;
  byId("trouble").hidden = false;
}

// Statistics as the proxy wrote them, a record in each line.
function read(who, lines) {
  const records = [], all = lines.split("\n");
  for (const line of all) {
    try {
      const found = JSON.parse(line);
      if (typeof found?.type === "string") records.push(found);
    } catch { /* counted below */ }
  }
  if (records.length < all.length) trouble(`${who}'s statistics: lines that are no records are left out`);
  return records;
}

function connection(there) {
  const chip = byId("connection");
  chip.textContent = !there ? "connection lost, trying again" : state.live && !state.chosen ? "live" : "from its record";
  chip.className = `chip ${!there ? "lost" : state.live && !state.chosen ? "live" : ""}`;
}

function folder(told) {
  if (state.name !== undefined && state.name !== told.name) begins({ run: "", live: told.live });
  state.name = told.name;
  state.live = told.live;
  state.ahead = told.now - Date.now() / 1000;
  byId("name").textContent = told.name;
  document.title = `${told.name} · tm3lab watch`;
  byId("trouble").hidden = true;
  runs(told.runs);
  byId("link").hidden = !told.link;
  connection(true);
}

function begins(told) {
  state.recording = new Recording();
  state.run = told.run;
  state.following = told.live && !state.chosen;
  state.playing = !state.following && !still.matches;
  state.cursor = -Infinity;
  byId("said").textContent = "";
  view.forget();
  sweep.runs(state.following ? told.run : "");
  runs();
}

function runs(kept = state.kept ?? []) {
  state.kept = kept;
  const list = byId("run"), wanted = ["", ...kept];
  list.closest("label").hidden = kept.length === 0;
  byId("no-run").hidden = kept.length > 0 || state.live || byId("sweep").hidden;
  if (list.options.length !== wanted.length || wanted.some((it, at) => list.options[at].value !== it)) {
    list.replaceChildren(...wanted.map((it) => new Option(it || "", it)));
  }
  list.options[0].textContent = `${state.live ? "now" : "latest"}: ${state.run}`;
  list.value = state.chosen;
}

function said(told) {
  const place = byId("said"), end = place.scrollTop + place.clientHeight >= place.scrollHeight - 4;
  place.textContent = `${place.textContent}${told.lines.join("\n")}\n`.split("\n").slice(-LINES_MOST).join("\n");
  if (end) place.scrollTop = place.scrollHeight;
}

// --- which moment ---

function moment(now, passed) {
  const recording = state.recording;
  if (recording.empty) return;
  if (state.cursor < recording.from) { state.cursor = state.following ? recording.until : recording.from; state.moved = true; }
  if (state.following) {
    if (state.cursor !== recording.until) state.moved = true;
    state.cursor = recording.until;
  } else if (state.playing) {
    state.cursor = Math.min(recording.until, state.cursor + passed * Number(byId("speed").value));
    state.moved = true;
    if (state.cursor === recording.until && !state.live) state.playing = false;
  }
}

function go(time, { play = false } = {}) {
  const { from, until } = state.recording;
  state.cursor = Math.min(until, Math.max(from, time));
  state.following = false;
  state.playing = play;
  state.moved = true;
}

function newest() {
  state.following = state.live && !state.chosen;
  state.playing = false;
  state.cursor = state.recording.until;
  state.moved = true;
}

function toggle() {
  const recording = state.recording;
  if (state.following || state.playing) { state.following = state.playing = false; }
  else { if (state.cursor >= recording.until) state.cursor = recording.from; state.playing = true; }
  state.moved = true;
}

function step(direction) {
  const samples = view.samples(state.recording);
  const next = direction > 0 ? samples.find((it) => it.time > state.cursor + 1e-6) : samples.findLast((it) => it.time < state.cursor - 1e-6);
  if (next) go(next.time);
}

function controls() {
  const { from, until } = state.recording, cursor = byId("cursor");
  cursor.max = String(Math.max(0.001, until - from));
  if (document.activeElement !== cursor || state.following || state.playing) cursor.value = String(state.cursor - from);
  const text = `${(state.cursor - from).toFixed(1)} s`;
  byId("clock").textContent = text;
  cursor.setAttribute("aria-valuetext", `${text} of ${(until - from).toFixed(1)} s`);
  byId("play").textContent = state.following || state.playing ? "Pause" : "Play";
  byId("newest").hidden = !(state.live && !state.chosen && !state.following);
}

let drawn = 0, before = performance.now();
function frame(now) {
  requestAnimationFrame(frame);
  if (now - drawn < (still.matches && !state.playing ? 1000 : FRAME_MS) && !(state.moved && !state.following && !state.playing)) return;
  moment(now, (now - before) / 1000);
  before = drawn = now;
  if (source && now - heard > LOST_AFTER_MS && source.readyState === EventSource.OPEN) open();
  if (!state.moved) return;
  state.moved = false;
  sweep.draw();
  const empty = state.recording.empty;
  byId("watching").hidden = empty && !(state.kept ?? []).length;
  byId("waiting").hidden = !empty || !byId("sweep").hidden;
  if (empty) return;
  controls();
  view.draw(state.recording, state.cursor, link.history);
}

// --- what the reader does ---

byId("play").onclick = toggle;
byId("newest").onclick = newest;
byId("cursor").oninput = (event) => go(state.recording.from + Number(event.target.value));
byId("run").onchange = (event) => {
  state.chosen = event.target.value;
  state.recording = new Recording();
  state.moved = true;
  open();
};
for (const place of ["side", "window", "session"]) byId(place).addEventListener("change", () => { state.moved = true; });
byId("events").addEventListener("click", (event) => {
  const time = Number(event.target.closest("button")?.dataset.time);
  if (time) go(time);
});
addEventListener("resize", () => { state.moved = true; sweep.moved = true; });
matchMedia("(prefers-color-scheme: dark)").onchange = () => { state.moved = true; sweep.moved = true; };
addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, button, pre, a") || event.ctrlKey || event.metaKey || event.altKey) return;
  const does = { " ": toggle, ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => go(state.recording.from), End: newest }[event.key];
  if (!does || state.recording.empty) return;
  event.preventDefault();
  does();
});
open();
requestAnimationFrame(frame);
