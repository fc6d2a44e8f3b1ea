// SPDX-License-Identifier: MIT
// The sliders of a lab's last mile. What they show is what is in force, as the lab read it back.

import { byId, element, put } from "./words.js";

const HISTORY = 6000;
const percent = (value) => `${Number((100 * value).toPrecision(2))} %`;
// A slider goes from 0 to 1000; most people turn small values finely and large ones coarsely.
const steep = (most) => ({ to: (at) => Number((most * (at / 1000) ** 3).toPrecision(2)), at: (value) => 1000 * (Math.min(value, most) / most) ** (1 / 3) });
const ratio = (least, most) => ({ to: (at) => Number((least * (most / least) ** (at / 1000)).toPrecision(2)), at: (value) => (1000 * Math.log(Math.max(value, least) / least)) / Math.log(most / least) });
const SLIDERS = {
  rtt_ms: ["round trip", (it) => `${it} ms`, steep(1000)],
  down_mbps: ["rate down", (it) => (it === null ? "no limit" : `${it} Mbit/s`), ratio(0.1, 200)],
  up_mbps: ["rate up", (it) => (it === null ? "no limit" : `${it} Mbit/s`), ratio(0.1, 200)],
  loss_down: ["loss down", percent, steep(0.2)],
  loss_up: ["loss up", percent, steep(0.2)],
  queue_down_ms: ["queue down", (it) => `${it} ms`, ratio(1, 2000)],
  queue_up_ms: ["queue up", (it) => `${it} ms`, ratio(1, 2000)],
};

export class Link {
  constructor() {
    this.history = []; // {time, down, up}: bytes in the first mile's queues
    this.turning = null; // the slider that is held
  }

  told(told) {
    const miles = Object.entries(told.miles), counted = miles[0]?.[1].counted;
    if (counted) this.history.push({ time: told.time, down: counted.down.queue.queue_bytes, up: counted.up.queue.queue_bytes });
    if (this.history.length > HISTORY) this.history.splice(0, HISTORY / 2);
    const place = byId("miles");
    for (const [name, mile] of miles) {
      let box = [...place.children].find((it) => it.dataset.mile === name);
      if (!box) place.append((box = this.box(name, miles.length > 1)));
      for (const label of box.querySelectorAll("label")) this.show(label, mile);
    }
  }

  box(name, named) {
    const box = element("div", { className: "mile", "data-mile": name });
    for (const [parameter, [text]] of Object.entries(SLIDERS)) {
      const slider = element("input", { type: "range", min: 0, max: 1000, step: 1 });
      const label = element("label", { "data-parameter": parameter }, element("span", { text: named ? `${name}: ${text}` : text }), element("output"), slider);
      slider.oninput = () => { this.turning = slider; this.word(label, SLIDERS[parameter][2].to(Number(slider.value))); };
      slider.onchange = () => this.change(name, parameter, label, slider);
      box.append(label);
    }
    return box;
  }

  word(label, value) {
    const text = SLIDERS[label.dataset.parameter][1](value);
    put(label.querySelector("output"), text);
    label.querySelector("input").setAttribute("aria-valuetext", text);
  }

  show(label, mile) {
    const { parameter } = label.dataset, slider = label.querySelector("input"), value = mile[parameter];
    slider.disabled = parameter in mile.fixed;
    slider.title = mile.fixed[parameter] ?? "";
    if (this.turning === slider) return;
    this.word(label, value);
    if (slider.disabled) put(label.querySelector("output"), mile.fixed[parameter]);
    slider.value = value === null ? 1000 : SLIDERS[parameter][2].at(value);
    label.dataset.value = value;
  }

  async change(mile, parameter, label, slider) {
    const value = SLIDERS[parameter][2].to(Number(slider.value)), said = byId("link-said");
    try {
      const answer = await fetch("/link", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ mile, parameter, value }) });
      if (answer.ok) {
        put(said, `${SLIDERS[parameter][0]} is ${SLIDERS[parameter][1](value)} from the next packet on`);
        this.turning = null;
        this.told(await answer.json());
      } else put(said, (await answer.text()).trim());
    } catch {
      put(said, "the lab does not answer");
    }
    this.turning = null;
  }
}
