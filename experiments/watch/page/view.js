// SPDX-License-Identifier: MIT
// One moment of a recording: pipes, what led to it, queues, connections, events.

import { before } from "./record.js";
import { draw, nice, ofPipe } from "./charts.js";
import { byId, bytes, count, element, mbps, ms, put, seconds, some } from "./words.js";

const STILL_S = 0.5; // a pipe with bytes in flight of which nothing gets through for so long
const ENDED_SHOWN = 12, EVENTS_SHOWN = 200;
const WAITS = {
  connecting: "a connect, or a name", missing: "a message that is missing", taking: "its application or server to take bytes",
  credit: "the other end to take bytes", sending: "their turn on the pipes", idle: "nothing", flows: "nothing: flows of datagrams", ending: "their end",
};
const SENDER = { data: "there was nothing to send", pipes: "no pipe took more", limit: "the common limit was reached", order: "one pipe lagged", acks: "as much was kept as may be" };
const COLUMNS = ["", "round trip", "", "in flight", "unsent", "rate", "sent again"];

export class View {
  constructor() { this.forget(); }

  forget() {
    this.events = -1;
    this.top = 0;
  }

  get who() { return document.querySelector("#side input:checked").value; }

  samples(recording) { return this.chosen(recording.sides[this.who])?.samples ?? []; }

  // The session that is shown: the one that was chosen, else the newest with samples.
  chosen(side) {
    const there = [...side.sessions.values()].filter((it) => it.samples.length);
    const list = byId("session"), names = there.map((it) => String(it.number));
    if ([...list.options].map((it) => it.value).join() !== names.join()) {
      const newest = names[names.length - 1];
      list.replaceChildren(...there.map((it) => new Option(`${it.number}: ${it.peer}`, String(it.number))));
      if (newest) list.value = newest;
    }
    byId("session-label").hidden = there.length < 2;
    return side.sessions.get(Number(list.value));
  }

  draw(recording, time, link) {
    const side = recording.sides[this.who], other = recording.sides[this.who === "rp" ? "lp" : "rp"];
    const session = this.chosen(side), sample = session?.at(time);
    const peer = [...other.sessions.values()].filter((it) => it.samples.length && it.samples[0].time <= time).at(-1)?.at(time);
    const seconds_ = Number(byId("window").value);
    const window_ = { zero: recording.from, until: Math.max(time, recording.from + 0.5), from: 0 };
    window_.from = seconds_ ? Math.max(recording.from, window_.until - seconds_) : recording.from;
    this.pipes(sample, session, time);
    this.charts(session, sample, window_);
    this.queues(sample, peer, link, time);
    this.connections(recording, time);
    this.happened(recording, time);
  }

  // --- the pipes ---

  pipes(sample, session, time) {
    const pipes = [...(sample?.pipes ?? [])].sort((a, b) => a.pipe - b.pipe), place = byId("lanes");
    while (place.children.length < pipes.length) place.append(lane(place.children.length));
    while (place.children.length > pipes.length) place.lastChild.remove();
    const largest = Math.max(0, ...pipes.map((it) => Math.max(it.cwnd * it.mss, it.in_flight + it.unsent)));
    // The scale grows at once and shrinks slowly, or it would be the scale that one sees move.
    if (largest > this.top || largest < this.top / 3) this.top = nice(1.2 * largest);
    pipes.forEach((pipe, number) => fill(place.children[number], pipe, this.top, time));
    const total = pipes.reduce((sum, it) => sum + (it.tx_mbps ?? 0), 0), all = sample?.aggregate;
    const late = sample ? time - sample.time : 0;
    put(byId("pipes-sum"), !sample ? "No pipes at this moment." : [
      some(pipes.length, "pipe"), `${mbps(total)} together`,
      all ? `common limit ${all.state}: ${bytes(all.held)} held of ${all.limit === null ? "any" : bytes(all.limit)}` : "no common limit",
      sample.losses ? `${sample.losses.percent.toFixed(2)} % lost, carried by ${sample.losses.carried_by}` : "",
      session.ended <= time && late > 0.3 ? "the session is over" : late > 3 ? `nothing told for ${late.toFixed(0)} s` : "",
    ].filter(Boolean).join(" · "));
    document.documentElement.dataset.time = sample ? String(sample.time) : "";
  }

  // --- what led to it ---

  charts(session, sample, window_) {
    const all = session?.samples ?? [];
    const first = Math.max(0, before(all, window_.from) - 1), last = before(all, window_.until);
    const every = Math.max(1, Math.floor((last - first) / 900)), some_ = [];
    for (let at = first; at <= last; at++) if (at === last || (at - first) % every === 0) some_.push(all[at]);
    const numbers = [...new Set(some_.flatMap((it) => it.pipes.map((pipe) => pipe.pipe)))].sort((a, b) => a - b);
    const of = (field) => numbers.map((number) => ({
      ...ofPipe(number),
      points: some_.map((it) => [it.time, it.pipes.find((pipe) => pipe.pipe === number)?.[field] ?? null]),
    }));
    const together = some_.map((it) => [it.time, it.pipes.reduce((sum, pipe) => sum + (pipe.tx_mbps ?? 0), 0)]);
    const back = some_.map((it) => [it.time, it.pipes.reduce((sum, pipe) => sum + (pipe.rx_mbps ?? 0), 0)]);
    this.chart("rate", "Mbit/s", window_, [{ points: together, colour: "--ink", width: 2, area: true }, ...(numbers.length > 1 ? of("tx_mbps") : []), { points: back, colour: "--soft", dash: [2, 3] }],
      sample ? `${mbps(together.at(-1)[1])} together (thick), ${mbps(back.at(-1)[1])} come back (dotted)` : "");
    const base = { points: some_.map((it) => [it.time, it.aggregate?.base_ms || null]), colour: "--soft", dash: [4, 3] };
    const trips = (sample?.pipes ?? []).map((it) => it.rtt_ms);
    this.chart("rtt", "ms", window_, [...of("rtt_ms"), base],
      trips.length ? `${ms(Math.min(...trips))} to ${ms(Math.max(...trips))}${sample.aggregate?.base_ms ? `; ${ms(sample.aggregate.base_ms)} without a queue (dashed)` : ""}` : "");
    const kilo = (field) => some_.map((it) => [it.time, it.aggregate?.[field] == null ? null : it.aggregate[field] / 1000]);
    const bands = [];
    for (const it of some_) {
      const state = it.aggregate?.state;
      if (bands.at(-1)?.state === state) bands.at(-1).until = it.time;
      else { if (bands.length) bands.at(-1).until = it.time; bands.push({ state, from: it.time, until: it.time, colour: state === "bound" ? "--p0" : "--p1" }); }
    }
    const aggregate = sample?.aggregate;
    this.chart("limit", "KB", window_, [{ points: kilo("held"), colour: "--p2", area: true }, { points: kilo("limit"), colour: "--ink", steps: true, width: 2 }],
      aggregate ? `${aggregate.state}: ${bytes(aggregate.held)} held, limit ${aggregate.limit === null ? "none" : bytes(aggregate.limit)}` : "off", { bands: bands.filter((it) => ["bound", "yield"].includes(it.state)) });
    const lost = some_.map((it, at) => [it.time, at ? grown(it, some_[at - 1]) : 0]);
    const shown = lost.filter(([time]) => time > window_.from).reduce((sum, it) => sum + it[1], 0);
    this.chart("losses", "segments", window_, [], sample ? `${some(shown, "segment")} in what is shown, ${count(sample.pipes.reduce((sum, it) => sum + it.retransmits, 0))} by these pipes so far` : "", { bars: { points: lost, colour: "--p1" }, least: 5 });
  }

  chart(name, unit, window_, lines, text, more = {}) {
    const figure = byId(name);
    put(figure.querySelector("figcaption span"), text);
    const canvas = figure.querySelector("canvas");
    canvas.setAttribute("aria-label", `${figure.querySelector("b").textContent}: ${text}`);
    draw(canvas, { ...window_, lines, unit, ...more });
  }

  // --- queues and connections ---

  queues(sample, peer, link, time) {
    const here = sample?.queues, there = peer?.queues, us = this.who, them = us === "rp" ? "lp" : "rp";
    const sum = (field) => (sample ? sample.pipes.reduce((total, it) => total + it[field], 0) : null);
    const mile = link[before(link, time)]?.[us === "rp" ? "down" : "up"];
    const list = [
      [`before ${us}`, here ? here.sending + here.credit : null, here ? `with bytes to send · ${SENDER[here.sender]}` : "not told", (it) => some(it, "connection")],
      ["in the pipes' sockets", sum("unsent"), "not sent yet"],
      ["on the way", sum("in_flight"), mile === undefined ? "sent, not acknowledged" : `of it ${bytes(mile)} in the last mile's queue`],
      [`before its turn at ${them}`, there?.early ?? null, "out of order, with bookkeeping"],
      [`in order at ${them}`, there?.queued ?? null, "not taken by applications yet"],
      [`kept at ${us}`, here?.kept ?? null, "until the other end has it"],
    ];
    const place = byId("queues");
    while (place.children.length < list.length) place.append(element("li", {}, element("span"), element("b"), element("span"), element("div", { className: "bar" })));
    const largest = Math.max(1, ...list.slice(1).map((it) => it[1] ?? 0));
    list.forEach(([title, value, text, told = bytes], number) => {
      const [head, figure, below, bar] = place.children[number].children;
      put(head, title);
      put(figure, value === null ? "–" : told(value));
      put(below, text);
      bar.style.width = number && value ? `${(100 * value) / largest}%` : "0";
    });
  }

  connections(recording, time) {
    const newest = (side) => [...side.sessions.values()].filter((it) => it.ended > time).map((it) => it.at(time)?.queues).filter(Boolean);
    const both = ["rp", "lp"].map((who) => newest(recording.sides[who]));
    const total = (some_, field) => (some_.length ? some_.reduce((sum, it) => sum + it[field], 0) : null);
    const place = byId("waits").tBodies[0], rows = [...Object.entries(WAITS), ["connections", "all"]];
    while (place.children.length < rows.length) place.append(element("tr", {}, element("td"), element("td", { className: "n" }), element("td", { className: "n" })));
    rows.forEach(([field, text], number) => {
      const cells = place.children[number].children, values = both.map((it) => total(it, field));
      put(cells[0], text);
      values.forEach((value, at) => {
        put(cells[at + 1], value === null ? "–" : count(value));
        cells[at + 1].classList.toggle("zero", !value);
        cells[at + 1].dataset.field = field;
      });
    });
    // Who receives knows how long messages waited for those before them.
    const { rp, lp } = recording.sides, receiver = this.who === "rp" ? lp : rp;
    this.ended(receiver.start ? receiver : recording.sides[this.who], time);
  }

  ended(side, time) {
    const until = before(side.ended, time, (it) => it.closed) + 1, place = byId("ended").tBodies[0];
    const shown = side.ended.slice(Math.max(0, until - ENDED_SHOWN), until).reverse(), ends = new Map();
    for (let at = 0; at < until; at++) ends.set(side.ended[at].end, (ends.get(side.ended[at].end) ?? 0) + 1);
    const how = [...ends].sort((a, b) => b[1] - a[1]).map(([end, n]) => `${count(n)} ${end}`).join(", ");
    put(byId("ended-sum"), until ? `${some(until + side.forgotten, "connection")} until now: ${how}` : "None until now.");
    const marks = shown.map((it) => `${it.session}.${it.id}.${it.closed}`).join();
    if (place.dataset.marks === marks) return;
    place.dataset.marks = marks;
    const rp = side.who === "rp";
    place.replaceChildren(...shown.map((it) => element("tr", {},
      element("td", { text: it.protocol === "udp" ? `${it.dst} (udp)` : it.dst }), element("td", { className: "n", text: seconds(it.closed - it.opened) }),
      element("td", { className: "n", text: bytes(rp ? it.tx_bytes : it.rx_bytes) }), element("td", { className: "n", text: bytes(rp ? it.rx_bytes : it.tx_bytes) }),
      element("td", { className: "n", text: ms(it.reorder_ms.max) }), element("td", { text: it.end }))));
  }

  // --- events ---

  happened(recording, time) {
    const place = byId("events"), events = recording.events().slice(-EVENTS_SHOWN);
    if (this.events !== events.length || place.dataset.last !== String(events.at(-1)?.time)) {
      this.events = events.length;
      place.dataset.last = String(events.at(-1)?.time);
      place.replaceChildren(...events.map((it) => element("li", {}, element("button", { type: "button", "data-time": it.time, title: "go to this moment" },
        element("time", { text: `${(it.time - recording.from).toFixed(2)} s` }), element("span", { text: `${it.who}: ${it.text}` })))));
      place.scrollTop = place.scrollHeight;
    }
    [...place.children].forEach((line, at) => line.classList.toggle("later", events[at].time > time));
  }
}

function grown(now, then) {
  return now.pipes.reduce((sum, it) => {
    const was = then.pipes.find((pipe) => pipe.pipe === it.pipe)?.retransmits ?? 0;
    return sum + (it.retransmits >= was ? it.retransmits - was : it.retransmits);
  }, 0);
}

function lane(number) {
  const made = element("div", { className: "lane", role: "row" });
  COLUMNS.forEach((label, at) => {
    const cell = element("span", { role: "cell" });
    if (label) cell.dataset.label = label;
    if (at === 0) cell.append(element("i", { className: "swatch" }), element("b"), element("small"));
    if (at === 2) {
      cell.className = "wide";
      cell.append(element("span", { className: "track" }, element("i", { className: "flight" }), element("i", { className: "unsent" }), element("i", { className: "window" })));
    }
    made.append(cell);
  });
  return made;
}

function fill(row, pipe, top, time) {
  const [name, trip, wide, flight, unsent, rate, again] = row.children, share = (value) => `${Math.min(100, (100 * value) / top)}%`;
  row.style.setProperty("--mine", `var(${ofPipe(pipe.pipe).colour})`);
  row.dataset.pipe = pipe.pipe;
  const quiet = time - pipe.moved > STILL_S && pipe.in_flight > 0;
  row.classList.toggle("still", quiet);
  put(name.children[1], `pipe ${pipe.pipe}`);
  put(name.children[2], quiet ? `silent ${(time - pipe.moved).toFixed(1)} s` : pipe.cc ? `${pipe.cc}${pipe.transport === "tcp" ? "" : `, ${pipe.transport}`}` : pipe.transport);
  put(trip, ms(pipe.rtt_ms));
  put(flight, bytes(pipe.in_flight));
  put(unsent, bytes(pipe.unsent));
  put(rate, mbps(pipe.tx_mbps));
  put(again, count(pipe.retransmits));
  const [inFlight, notSent, mark] = wide.firstChild.children;
  inFlight.style.cssText = `left:0;width:${share(pipe.in_flight)}`;
  notSent.style.cssText = `left:${share(pipe.in_flight)};width:${share(pipe.unsent)}`;
  mark.style.left = `calc(${share(pipe.cwnd * pipe.mss)} - 2px)`;
  wide.firstChild.title = `${bytes(pipe.in_flight)} in flight, ${bytes(pipe.unsent)} unsent, window ${bytes(pipe.cwnd * pipe.mss)}`;
}
