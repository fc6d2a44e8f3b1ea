// SPDX-License-Identifier: MIT
// How far a sweep is, the times of its runs, and the plots that were drawn.

import { strips } from "./charts.js";
import { byId, count, element, left, put } from "./words.js";

const ROWS_MOST = 40; // configurations that have a row of their own

function picture(name, svg) {
  const img = element("img", { src: `data:image/svg+xml,${encodeURIComponent(svg)}`, alt: `plot: ${name.replace(".svg", "")}` });
  return element("a", { href: `/plots/${encodeURIComponent(name)}` }, img);
}

export class Sweep {
  constructor() {
    this.plan = null;
    this.moved = false;
    this.drawn = new Map(); // pictures by name
  }

  begins(told) {
    this.plan = told;
    this.records = new Map(); // by run: the latest attempt counts
    this.left = told.total;
    this.left_s = null;
    this.now = "";
    this.moved = true;
    this.pictures({ names: [], drawn: {} }); // those of the sweep before
    byId("sweep").hidden = false;
    put(byId("sweep-title"), told.title);
    put(byId("question"), told.question);
    byId("question").hidden = !told.question;
  }

  ended(told) {
    for (const run of told.runs) this.records.set(run.id, run);
    this.left = told.left;
    this.left_s = told.left_s;
    this.moved = true;
  }

  runs(name) {
    this.now = name;
    this.moved = true;
  }

  // They come with their event: the server of a sweep ends when the last of them is drawn.
  pictures(told) {
    const before = this.drawn;
    this.drawn = new Map(told.names.map((name) => [name, name in told.drawn ? picture(name, told.drawn[name]) : before.get(name)]));
    byId("plots").replaceChildren(...[...this.drawn.values()].filter(Boolean));
  }

  draw() {
    if (!this.plan || !this.moved) return;
    this.moved = false;
    const done = this.plan.total - this.left, bar = byId("bar"), outcomes = new Map();
    bar.setAttribute("aria-valuemax", this.plan.total);
    bar.setAttribute("aria-valuenow", done);
    bar.firstElementChild.style.width = `${(100 * done) / this.plan.total}%`;
    for (const it of this.records.values()) outcomes.set(it.outcome, (outcomes.get(it.outcome) ?? 0) + 1);
    const bad = [...outcomes].filter(([outcome]) => outcome !== "ok").map(([outcome, n]) => `${count(n)} ${outcome}`);
    put(byId("progress"), [`${count(done)} of ${count(this.plan.total)} runs`, ...bad, this.left ? (this.left_s === null ? "" : `about ${left(this.left_s)} left`) : "done", this.now ? `now ${this.now}` : ""].filter(Boolean).join(" · "));
    const rows = Object.entries(this.plan.configurations).map(([key, label]) => ({ key, label, values: [] })), byKey = new Map(rows.map((it) => [it.key, it]));
    for (const it of this.records.values()) if (it.outcome === "ok" && it.value !== null) byKey.get(it.configuration)?.values.push(it.value);
    const shown = rows.length > ROWS_MOST ? rows.filter((it) => it.values.length).slice(-ROWS_MOST) : rows;
    const { label, unit } = this.plan.metric, figure = byId("times");
    put(figure.querySelector("figcaption"), `${label} of each run; the stroke is the median so far${rows.length > shown.length ? ` (${shown.length} of ${count(rows.length)} configurations)` : ""}`);
    figure.querySelector("canvas").setAttribute("aria-label", `${label} by configuration, ${count(this.records.size)} runs`);
    strips(figure.querySelector("canvas"), shown, unit);
  }
}
