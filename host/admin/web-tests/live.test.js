// Rates from readings, events from pieces of text, words for numbers, and what is stuck.

import assert from "node:assert/strict";
import test from "node:test";

import { EventReader } from "../web/api.js";
import { Rates } from "../web/rates.js";
import { stuck } from "../web/stuck.js";
import { ahead, bytes, duration, many, rate } from "../web/words.js";

test("a rate needs two readings and forgets what is old", () => {
  const rates = new Rates();
  assert.equal(rates.of("a", 0), null);
  rates.read("a", 100, 0);
  assert.equal(rates.of("a", 1_000), null);
  rates.read("a", 120, 2_000);
  assert.equal(rates.of("a", 2_000), 10);
  assert.equal(rates.of("a", 10_000), 2);
  assert.equal(rates.of("a", 30_000), 0);
});

test("a counter that fell began anew", () => {
  const rates = new Rates();
  rates.read("a", 1_000, 0);
  rates.read("a", 5, 5_000);
  assert.equal(rates.of("a", 5_000), null);
  rates.read("a", 25, 7_000);
  assert.equal(rates.of("a", 7_000), 10);
});

test("events are cut out of text that comes in any pieces", () => {
  const text = ': heartbeat\n\nevent: engine\ndata: {"a":"x y"}\n\nevent: interface\ndata: {"b":1}\n\n';
  for (const size of [1, 2, 7, 1_000]) {
    const heard = [];
    const reader = new EventReader((kind, data) => heard.push([kind, data]));
    for (let at = 0; at < text.length; at += size) reader.take(text.slice(at, at + size));
    assert.deepEqual(heard, [["engine", { a: "x y" }], ["interface", { b: 1 }]]);
  }
});

test("numbers and times are words", () => {
  assert.equal(rate(null), "–");
  assert.equal(rate(0.05), "< 0.1/s");
  assert.equal(rate(1_234), "1,234/s");
  assert.equal(bytes(1_536), "1.5 KiB");
  assert.equal(bytes(7), "7 B");
  assert.equal(duration(90_061_000), "1 d 1 h");
  assert.equal(duration(3_600_000), "1 h");
  assert.equal(duration(400), "0 s");
  assert.equal(many(1, "delivery", "deliveries"), "1 delivery");
  assert.equal(ahead(new Date(65_000).toISOString(), 0), "in 1 min 5 s");
  assert.equal(ahead(new Date(5_000).toISOString(), 6_000), "now");
});

test("what stands still comes before what goes on by itself", () => {
  const destination = (name, more) => ({
    name, state: "running", why: null, since: null, until: null, blocked: [], lanes_blocked: 0, quarantined: 0, ...more,
  });
  const why = { code: "refused", text: "connection refused" };
  const at = new Date(0).toISOString();
  const lane = { lane: 7, message: 42, why: "http-400", attempts: 2, due_at: null };
  const live = {
    engine: { intake: { closed: null } },
    interfaces: new Map([["lab", {
      name: "lab", poll: null,
      destinations: [
        destination("a", { state: "waiting", why, since: at, until: new Date(20_000).toISOString() }),
        destination("b", { state: "stopped", why, since: at }),
        destination("c", { blocked: [lane], lanes_blocked: 1, quarantined: 2 }),
      ],
    }]]),
  };
  const found = stuck(live, 10_000);
  assert.deepEqual(found.map((one) => one.grave), [true, true, true, false]);
  assert.equal(found[0].text, "lab → b: stopped for 10 s: connection refused (refused)");
  assert.deepEqual(found[0].resume, { interface: "lab", destination: "b" });
  assert.equal(found[1].links[0].href, "#/messages/42");
  assert.equal(found[2].links[0].href, "#/messages?interface=lab&destination=c&status=quarantined");
  assert.match(found[3].text, /away for 10 s, asked again in 10 s/);
});

test("a paused destination says who paused it and why", () => {
  const destination = {
    name: "api", state: "paused", since: new Date(0).toISOString(), pause: { author: "ann", reason: "their disk" },
    blocked: [], lanes_blocked: 0, quarantined: 0,
  };
  const of_lab = { name: "lab", poll: null, destinations: [destination] };
  const found = stuck({ engine: null, interfaces: new Map([["lab", of_lab]]) }, 60_000);
  assert.deepEqual(found.map((one) => one.text), ["lab → api: paused for 1 min by ann: their disk"]);
});

test("a store that cannot be read is grave, and says of when is what is shown", () => {
  const away = { why: { code: "store", text: "connection refused" }, read_at: new Date(0).toISOString() };
  const of = (more) => stuck({ engine: { intake: { closed: null }, away: { ...away, ...more } }, interfaces: new Map() }, 5_000);
  assert.deepEqual(of({}).map(({ grave, text }) => [grave, text]),
    [[true, "The store cannot be read: connection refused; what waits is as it was 5 s ago"]]);
  assert.match(of({ read_at: null })[0].text, /what waits is not known/);
});

test("lanes that wait for the same reason are one line", () => {
  const lane = (number, more) => ({ lane: number, message: number + 100, why: "unreachable: no", attempts: number, due_at: new Date(number * 1000).toISOString(), ...more });
  const blocked = [lane(9), lane(5), lane(7, { why: "http-503" }), lane(3, { due_at: null })];
  const of_lab = { name: "lab", poll: null, destinations: [{ name: "api", state: "running", blocked, lanes_blocked: 6, quarantined: 0 }] };
  const found = stuck({ engine: null, interfaces: new Map([["lab", of_lab]]) }, 0);
  assert.deepEqual(found.map((one) => one.text), [
    "lab → api: lane 3 waits, until somebody resends or dismisses its message, after 3 attempts: unreachable: no",
    "lab → api: 2 lanes wait, next try in 5 s, after 9 attempts: unreachable: no",
    "lab → api: lane 7 waits, next try in 7 s, after 7 attempts: http-503",
    "lab → api: 2 more lanes wait",
  ]);
});
