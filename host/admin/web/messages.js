// The list of messages, and one message with all that is known of it.

import * as api from "./api.js";
import { bodySection, outputsSection } from "./body.js";
import { announce, el, field, fill, table, tag } from "./dom.js";
import { bytes, clock, count } from "./words.js";

/** Messages of a page. */
const LIMIT = 50;
const STATUSES = ["pending", "finished", "quarantined", "duplicate"];
const FILTERS = ["interface", "destination", "status", "cursor"];

/** The list, as the address of the page asks for it. */
export async function messageList(place, query, filter, signal) {
  const asked = new URLSearchParams({ limit: LIMIT });
  for (const name of FILTERS) if (query.get(name)) asked.set(name, query.get(name));
  const found = el("div", { "aria-live": "polite", "aria-busy": "true" }, el("p", {}, "Loading …"));
  fill(place, el("h1", {}, "Messages"), filter.form, found);
  const page = await api.get(`/api/v1/messages?${asked}`, signal);
  found.setAttribute("aria-busy", "false");
  if (page.items.length === 0) return fill(found, el("p", {}, "No message fits."));
  const columns = ["Message", "Interface", "Status", "Stored", "Key", "Size"];
  const rows = page.items.map((one) => [
    el("a", { href: `#/messages/${one.id}` }, String(one.id)),
    one.interface, tag(one.status), clock(one.stored_at), one.key ?? "–", bytes(one.body_bytes),
  ]);
  fill(found, table(captionOf(query), columns, rows), pages(query, page));
}

function captionOf(query) {
  const parts = ["Messages"];
  if (query.get("status")) parts.push(query.get("status"));
  if (query.get("interface")) parts.push(`of ${query.get("interface")}`);
  if (query.get("destination")) parts.push(`to ${query.get("destination")}`);
  return `${parts.join(" ")}, newest first`;
}

function pages(query, page) {
  const link = (changes, text) => {
    const to = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) value ? to.set(name, value) : to.delete(name);
    return el("a", { href: `#/messages?${to}` }, text);
  };
  return el("nav", { class: "controls", "aria-label": "Pages of the list" },
    query.get("cursor") && link({ cursor: null }, "Newest"),
    page.next !== null && link({ cursor: page.next }, "Older"));
}

/** The form that chooses which messages are listed. */
export class MessageFilter {
  constructor(query, live) {
    this.live = live;
    this.given = query.get("interface") ?? "";
    this.interfaces = el("select", { id: "of", name: "interface" });
    const status = query.get("status") ?? "";
    const statuses = [["", "any"], ...STATUSES.map((one) => [one, one])];
    this.form = el("form", { class: "controls", "aria-label": "Which messages", onsubmit: (event) => this.choose(event) },
      field("Interface", this.interfaces),
      field("Status", el("select", { id: "in", name: "status" },
        statuses.map(([value, text]) => el("option", { value, selected: value === status }, text)))),
      el("button", { type: "submit" }, "Show"));
    this.update();
  }

  /** The names may come after the page. What is chosen stays. */
  update() {
    const names = ["", ...this.live.interfaces.keys()];
    if (!names.includes(this.given)) names.push(this.given);
    if (names.length === this.interfaces.options.length) return;
    const chosen = this.interfaces.value || this.given;
    fill(this.interfaces, names.map((name) => el("option", { value: name, selected: name === chosen }, name || "all")));
  }

  choose(event) {
    event.preventDefault();
    const to = new URLSearchParams([...new FormData(this.form)].filter(([, value]) => value !== ""));
    const hash = `#/messages?${to}`;
    // Asking for the same again asks the engine again.
    if (location.hash === hash) dispatchEvent(new Event("hashchange"));
    else location.hash = hash;
  }
}

/** One message. */
export async function messagePage(place, id, signal) {
  fill(place, el("h1", {}, `Message ${id}`), el("p", {}, "Loading …"));
  const detail = await api.get(`/api/v1/messages/${id}`, signal);
  const { message, attributes, deliveries, attempts, outputs, actions } = detail;
  const again = async () => {
    await messagePage(place, id, signal);
    place.querySelector("h1").focus();
  };
  fill(place,
    el("h1", { tabindex: "-1" }, `Message ${id}`), facts(message),
    deliveriesOf(deliveries),
    deliveries.length > 0 && actForm(message, deliveries, again),
    attempts.length > 0 && attemptsOf(attempts),
    outputs.length > 0 && outputsSection(message, outputs, signal),
    actions.length > 0 && actionsOf(actions),
    bodySection(message, signal),
    attributes.length > 0 && attributesOf(attributes));
}

function facts(message) {
  const origin = message.origin && el("a", { href: `#/messages/${message.origin}` }, `${message.origin_kind} of ${message.origin}`);
  const all = [
    ["Interface", el("a", { href: `#/messages?${new URLSearchParams({ interface: message.interface })}` }, message.interface)],
    ["Status", tag(message.status)],
    ["Received", clock(message.received_at)],
    ["Stored", clock(message.stored_at)],
    ["Occurred", message.occurred_at && clock(message.occurred_at)],
    ["Key", message.key],
    ["Dedupe key", message.dedupe],
    ["Size", bytes(message.body_bytes)],
    ["Came from", origin],
  ];
  const known = all.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "facts" }, known.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function attributesOf(attributes) {
  const made = table("Attributes", ["Name", "Value"], attributes);
  made.classList.add("pairs");
  return made;
}

function deliveriesOf(deliveries) {
  if (deliveries.length === 0) return el("p", {}, "It has no deliveries.");
  const columns = ["Destination", "State", "Lane", "Round", "Attempts", "Next try", "Finished", "Why"];
  return table("Deliveries", columns, deliveries.map((one) => [
    one.destination, tag(one.state), count(one.lane), count(one.round), count(one.attempts),
    clock(one.due_at), clock(one.finished_at), one.reason ?? "–",
  ]));
}

function attemptsOf(attempts) {
  const columns = ["Destination", "Round", "Attempt", "Started", "Took", "Outcome", "What came of it"];
  return table("Attempts", columns, attempts.map((one) => [
    one.destination, count(one.round), count(one.number), clock(one.started_at), el("span", { class: "nowrap" }, `${count(one.took_ms)} ms`),
    tag(one.outcome), one.text || "–",
  ]));
}

function actionsOf(actions) {
  const columns = ["When", "What", "Destination", "Who", "Why"];
  return table("Actions", columns, actions.map((one) => [
    clock(one.at), one.action, one.destination ?? "all", one.author, one.reason || "–",
  ]));
}

/** Resend or dismiss, for one destination or all; the engine says what fits. */
function actForm(message, deliveries, again) {
  const said = el("p", { role: "status", "aria-live": "polite" });
  const destinations = [...new Set(deliveries.map((one) => one.destination))];
  const act = async (kind) => {
    const reason = form.elements.reason.value.trim();
    if (kind === "dismiss" && reason === "") {
      fill(said, "A dismissal needs a reason.");
      form.elements.reason.focus();
      return;
    }
    const destination = form.elements.destination.value;
    try {
      const done = await api.post(`/api/v1/messages/${message.id}/${kind}`, {
        reason, author: form.elements.author.value.trim(), ...(destination ? { destination } : {}),
      });
      announce(`${kind}: done for ${done.destinations.join(", ")}`);
      await again();
    } catch (error) {
      fill(said, error.message);
    }
  };
  const form = el("form", { class: "controls act", "aria-label": "Resend or dismiss" },
    field("Destination", el("select", { id: "act-to", name: "destination" }, el("option", { value: "" }, "all that fit"),
      destinations.map((name) => el("option", { value: name }, name)))),
    field("Who", el("input", { id: "act-who", name: "author", maxlength: "32", autocomplete: "username" })),
    field("Why", el("input", { id: "act-why", name: "reason", maxlength: "256", autocomplete: "off" })),
    el("button", { type: "button", onclick: () => act("resend") }, "Resend"),
    el("button", { type: "button", onclick: () => act("dismiss") }, "Dismiss"));
  form.addEventListener("submit", (event) => event.preventDefault());
  return el("section", { "aria-label": "What can be done" }, form, said);
}
