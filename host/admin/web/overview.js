// The overview: what is stuck, and every interface with its destinations, as it changes.

import * as api from "./api.js";
import { announce, el, field, fill, reconcile, row, setText, table } from "./dom.js";
import { stuck } from "./stuck.js";
import { ago, bytes, count, many, rate } from "./words.js";

/** Interfaces and lines of what is stuck that are shown at once. */
const INTERFACES_MAX = 100;
const STUCK_MAX = 50;
const COLUMNS = ["Destination", "To", "State", "Rate", "Waiting", "Oldest", "Quarantined", "Sent", "p50", "p99"];

/** Draws itself anew each time `update` is called; only what changed is touched. */
export class Overview {
  constructor(place, live) {
    this.live = live;
    this.known = null;
    this.summary = el("dl", { class: "facts" });
    this.trouble = el("p", { class: "bad", role: "alert" });
    this.stuck = el("ul", { class: "stuck" });
    this.calm = el("p", {}, "Nothing is stuck.");
    this.cards = el("div", { class: "cards" });
    this.more = el("p", { class: "quiet" });
    this.filter = el("input", { id: "filter", type: "search", autocomplete: "off", oninput: () => this.update() });
    fill(place,
      el("h1", {}, "Overview"), this.trouble, this.summary,
      el("section", { "aria-labelledby": "stuck-head" }, el("h2", { id: "stuck-head" }, "What is stuck"), this.calm, this.stuck),
      el("section", { "aria-labelledby": "interfaces-head" },
        el("div", { class: "controls" }, el("h2", { id: "interfaces-head" }, "Interfaces"),
          field("Name", this.filter)),
        this.cards, this.more));
    this.update();
  }

  update(now = Date.now()) {
    const { live } = this;
    setText(this.trouble, live.trouble ?? "");
    this.trouble.hidden = !live.trouble;
    this.showSummary(now);
    this.showStuck(now);
    const wanted = this.filter.value.trim().toLowerCase();
    const all = [...live.interfaces.values()].filter((one) => one.name.toLowerCase().includes(wanted));
    const shown = all.slice(0, INTERFACES_MAX);
    reconcile(this.cards, shown, (one) => one.name, card, (node, one) => updateCard(node, one, live, now));
    const left = all.length > shown.length && `${shown.length} of ${all.length} are shown; type a part of a name to see others.`;
    const none = live.engine && all.length === 0 && "No interface has this name.";
    setText(this.more, left || none || "");
  }

  showSummary(now) {
    const { engine, interfaces, rates } = this.live;
    const destinations = [...interfaces.values()].flatMap((one) => one.destinations);
    const sum = (pick) => destinations.reduce((total, one) => total + pick(one), 0);
    const facts = engine ? [
      ["Taken in", engine.intake.closed ? "closed" : "open"],
      ["Stored", `${count(engine.intake.stored)} (${rate(rates.of("stored", now))})`],
      ["Repeated", count(engine.intake.duplicates)],
      ["Waiting", queued(this.live, sum((one) => one.waiting))],
      ["Quarantined", queued(this.live, sum((one) => one.quarantined))],
      ["Running for", ago(engine.started_at, now)],
      ["Disk free", bytes(engine.free_bytes)],
    ] : [];
    if (engine?.notes?.length) facts.push(["Of the store", engine.notes.join("; ")]);
    const make = ([name]) => el("div", {}, el("dt", {}, name), el("dd"));
    reconcile(this.summary, facts, ([name]) => name, make, (node, [, value]) => setText(node.lastChild, value));
  }

  showStuck(now) {
    const all = stuck(this.live, now);
    const shown = all.slice(0, STUCK_MAX);
    if (all.length > shown.length) {
      shown.push({ key: "more", grave: false, text: `and ${all.length - shown.length} more` });
    }
    reconcile(this.stuck, shown, (one) => one.key, stuckLine, updateStuck);
    this.calm.hidden = all.length > 0 || !this.live.engine;
    this.tell(all);
  }

  /** Only what is new is said aloud; counts that rise are not. */
  tell(all) {
    const keys = new Set(all.map((one) => one.key));
    const fresh = all.filter((one) => this.known && !this.known.has(one.key));
    const gone = this.known && [...this.known].some((key) => !keys.has(key));
    if (fresh.length) announce(fresh.length > 3 ? `${fresh.length} more things are stuck` : fresh.map((one) => one.text).join(". "));
    else if (gone && all.length === 0) announce("Nothing is stuck any more");
    if (this.live.engine) this.known = keys;
  }
}

function stuckLine(one) {
  const button = one.resume && el("button", { type: "button", onclick: () => resume(one.resume) },
    "Resume", el("span", { class: "unseen" }, ` ${one.resume.interface} → ${one.resume.destination}`));
  return el("li", { class: one.grave ? "grave" : "mild" }, el("span"), " ", el("span", { class: "links" }), " ", button);
}

/** Starts a destination again; the stream tells what becomes of it. */
async function resume(to) {
  const name = `${to.interface} → ${to.destination}`;
  const path = [to.interface, to.destination].map(encodeURIComponent).join("/");
  try {
    await api.post(`/api/v1/destinations/${path}/resume`, {});
    announce(`${name}: started again`);
  } catch (error) {
    announce(`${name}: ${error.message}`);
  }
}

function updateStuck(node, one) {
  setText(node.firstChild, one.text);
  const create = () => el("a");
  reconcile(node.querySelector(".links"), one.links ?? [], (link) => link.href, create, (a, { href, text }) => {
    a.href = href;
    setText(a, text);
  });
}

function card(one) {
  const head = `interface-${one.name}`;
  const columns = COLUMNS;
  const made = table(`Destinations of ${one.name}`, columns, []);
  return el("article", { "aria-labelledby": head },
    el("div", { class: "controls" }, el("h3", { id: head }, one.name),
      el("a", { href: `#/messages?${new URLSearchParams({ interface: one.name })}` }, `Messages of ${one.name}`)),
    el("p", { class: "source" }), made, el("p", { class: "odd" }));
}

function updateCard(node, one, live, now) {
  setText(node.querySelector(".source"), sourceWords(one, live.rates.of(`in ${one.name}`, now), now));
  const body = node.querySelector("tbody");
  reconcile(body, one.destinations, (to) => to.name, destinationRow, (tr, to) => updateRow(tr, one, to, live, now));
  const odd = node.querySelector(".odd");
  setText(odd, oddWords(one));
  odd.hidden = odd.textContent === "";
}

/** Where its messages come from, and how many. */
function sourceWords(one, perSecond, now) {
  const { listener, poll, items } = one;
  const came = `${many(items.messages, "message")} (${rate(perSecond)})`;
  if (listener) {
    const tls = listener.tls ? " with TLS" : "";
    const open = `${listener.connections} of ${many(listener.connections_max, "connection")}`;
    return `${listener.plugin} on ${listener.address}${tls}, ${open}, ${came}`;
  }
  if (poll) return `${poll.plugin}: ${poll.state}, answered ${ago(poll.polled_at, now)} ago, ${came}`;
  return "Fed by routes of other interfaces";
}

/** A count that the store was asked for; nobody knows it if the store was away since the start. */
function queued({ engine }, number) {
  return engine?.away && !engine.away.read_at ? "?" : count(number);
}

/** What was refused or taken with a remark. */
function oddWords(one) {
  const refused = one.refusals.map((each) => `${each.reason} ${count(each.count)}`);
  const noticed = one.notices.map((each) => `${each.code} ${count(each.count)}`);
  const parts = [];
  if (refused.length) parts.push(`Refused: ${refused.join(", ")}.`);
  if (noticed.length) parts.push(`Noticed: ${noticed.join(", ")}.`);
  return parts.join(" ");
}

function destinationRow(to) {
  const state = el("span", { class: "tag" });
  const made = row(COLUMNS, [to.name, to.to, state, ...COLUMNS.slice(3).map(() => "")]);
  [...made.children].slice(3).forEach((cell) => cell.classList.add("number"));
  return made;
}

function updateRow(tr, one, to, live, now) {
  const tag = tr.children[2].firstChild;
  tag.className = `tag ${to.state}`;
  const { counts, latency } = to;
  const texts = [
    rate(live.rates.of(`out ${one.name} ${to.name}`, now)),
    queued(live, to.waiting),
    to.oldest ? ago(to.oldest, now) : "–",
    queued(live, to.quarantined),
    count(counts.sent),
    latency.count ? `${latency.p50_ms.toFixed(1)} ms` : "–",
    latency.count ? `${latency.p99_ms.toFixed(1)} ms` : "–",
  ];
  setText(tag, to.state);
  texts.forEach((text, at) => setText(tr.children[at + 3], text));
  tr.classList.toggle("is-bad", to.state === "stopped" || to.quarantined > 0);
}
