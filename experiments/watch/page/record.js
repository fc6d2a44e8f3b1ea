// SPDX-License-Identifier: MIT
// What the proxies told so far, in the order of time: samples of one proxy's sessions, and what
// can be read off two samples that follow each other. Nothing here knows of the page.

const SAMPLES_MOST = 12000; // of a session; then the older half keeps every second one
const ENDED_MOST = 20000; // connections that are remembered one by one
const NEAR_S = 0.05; // pipes of one sample are looked at one after the other
const ANNOUNCED = { start: 1, session: 1, limits: 1, dropped: 1, counters: 1 };

// The last of `list` whose time is not after `time`; -1 where there is none.
export function before(list, time, at = (it) => it.time) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(list[middle]) <= time) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// Of bits a second, since the sample before; null where there is nothing to compare with.
function mbps(now, then, field, seconds) {
  return then && seconds > 0 && now[field] >= then[field] ? (8e-6 * (now[field] - then[field])) / seconds : null;
}

class Session {
  constructor(number) {
    this.number = number;
    this.samples = [];
    this.ended = Infinity; // when
    this.peer = "";
  }

  at(time) { return this.samples[before(this.samples, time)]; }

  thin() {
    if (this.samples.length <= SAMPLES_MOST) return;
    const half = this.samples.length >> 1;
    this.samples = this.samples.filter((_, number) => number >= half || number % 2 === 0);
  }
}

export class Side {
  constructor(who) {
    this.who = who;
    this.start = null;
    this.sessions = new Map();
    this.ended = []; // connections, by when they closed
    this.forgotten = 0;
    this.events = [];
    this.from = Infinity;
    this.until = -Infinity;
    this.newest = null; // the sample that is being told
    this.limits = null;
  }

  session(number) {
    if (!this.sessions.has(number)) this.sessions.set(number, new Session(number));
    return this.sessions.get(number);
  }

  add(records) {
    for (const record of records) {
      const time = record.time ?? record.closed;
      if (typeof time !== "number") continue;
      this.from = Math.min(this.from, record.opened ?? time);
      this.until = Math.max(this.until, time);
      if (record.type === "pipe") this.pipe(record);
      else if (record.type === "conn") this.conn(record);
      else if (record.type in ANNOUNCED) this.announced(record);
      else this.beside(record);
    }
  }

  // --- samples ---

  pipe(record) {
    let sample = this.newest;
    const same = sample && sample.session === record.session && record.time - sample.time < NEAR_S;
    if (!same || sample.pipes.some((it) => it.pipe === record.pipe)) sample = this.begin(record);
    const then = sample.last?.pipes.find((it) => it.pipe === record.pipe);
    const seconds = then ? record.time - then.time : 0;
    const again = then && record.tx_bytes < then.tx_bytes;
    const told = { ...record, tx_mbps: mbps(record, then, "tx_bytes", seconds), rx_mbps: mbps(record, then, "rx_bytes", seconds) };
    // When anything was last seen to get through: an acknowledgement, or bytes from the other end.
    const moved = !then || again || record.rx_bytes !== then.rx_bytes || delivered(record) !== delivered(then) || !record.in_flight;
    told.moved = moved ? record.time : then.moved;
    told.lost = then && !again ? Math.max(0, record.retransmits - then.retransmits) : 0;
    sample.pipes.push(told);
    sample.time = record.time;
    if (again) this.say(record.time, `pipe ${record.pipe} was dialled again`);
    else if (sample.last && !then) this.say(record.time, `pipe ${record.pipe} is up`);
    if (record.state === "end") this.session(record.session).ended = record.time;
  }

  begin(record) {
    const session = this.session(record.session);
    const last = session.samples[session.samples.length - 1];
    if (last?.last) {
      const there = new Set(last.pipes.map((it) => it.pipe));
      for (const it of last.last.pipes) if (!there.has(it.pipe)) this.say(last.time, `pipe ${it.pipe} is gone`);
    }
    const sample = { time: record.time, session: record.session, pipes: [], aggregate: null, losses: null, queues: last?.queues ?? null, last };
    if (last) last.last = null; // or each would keep all before it
    session.samples.push(sample);
    session.thin();
    this.newest = sample;
    return sample;
  }

  beside(record) {
    const session = this.session(record.session);
    const sample = session.samples[session.samples.length - 1];
    if (!sample) return;
    if (record.type === "aggregate") this.aggregate(sample, record);
    if (record.type === "losses") {
      if (sample.last?.losses && sample.last.losses.carried_by !== record.carried_by) this.say(record.time, `traffic goes over ${record.carried_by === "sctp" ? "SCTP" : "the other pipes"} now: ${record.percent.toFixed(2)} % was lost`);
      sample.losses = record;
    }
    if (record.type === "queues") sample.queues = record;
  }

  aggregate(sample, record) {
    const then = sample.last?.aggregate;
    sample.aggregate = record;
    if (then && then.state !== record.state && (record.state === "yield" || then.state === "yield")) {
      this.say(record.time, record.state === "yield" ? "the common limit gives way: the queue is others'" : `the common limit is ${record.state} again`);
    }
  }

  // --- what happens once ---

  say(time, text) { this.events.push({ time, who: this.who, text }); }

  conn(record) {
    const list = this.ended;
    list.push(record);
    for (let at = list.length - 1; at > 0 && list[at - 1].closed > record.closed; at--) [list[at - 1], list[at]] = [list[at], list[at - 1]];
    if (list.length > ENDED_MOST) {
      list.shift();
      this.forgotten++;
    }
    if (["limit", "protocol", "session-lost"].includes(record.end)) this.say(record.closed, `connection ${record.id} to ${record.dst} ended: ${record.end}`);
  }

  announced(record) {
    if (record.type === "start") {
      this.start = record;
      this.say(record.time, `${record.program} ${record.version} began: ${record.pipes} pipes of ${record.transport}, ${record.binding} binding, ${record.pipe_policy}, ${record.conn_policy}, limit ${record.aggregate}`);
    } else if (record.type === "session") {
      const session = this.session(record.session);
      session.peer = record.peer;
      session.ended = record.event === "end" ? record.time : Infinity;
      this.say(record.time, record.event === "begin" ? `session ${record.session} with ${record.peer} began` : `session ${record.session} ended: ${record.reason}`);
    } else if (record.type === "dropped") {
      this.say(record.time, `${record.lines} lines of statistics are missing here`);
    } else if (record.type === "limits") {
      for (const [name, count] of Object.entries(record)) {
        const grew = typeof count === "number" && name !== "time" ? count - (this.limits?.[name] ?? 0) : 0;
        if (grew > 0) this.say(record.time, `refused by ${name}: ${grew}`);
      }
      this.limits = record;
    } else if (record.again || record.copies) {
      this.say(record.time, `session ${record.session}: ${record.again} messages were sent again on another pipe, ${record.copies} sent twice as overdue`);
    }
  }
}

function delivered(pipe) { return pipe.tx_bytes - pipe.in_flight - pipe.unsent; }

export class Recording {
  constructor() { this.sides = { rp: new Side("rp"), lp: new Side("lp") }; }

  get from() { return Math.min(this.sides.rp.from, this.sides.lp.from); }
  get until() { return Math.max(this.sides.rp.until, this.sides.lp.until); }
  get empty() { return this.until === -Infinity; }

  events() {
    return [...this.sides.rp.events, ...this.sides.lp.events].sort((a, b) => a.time - b.time);
  }
}
