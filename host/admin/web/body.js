// A message's body on the page: loaded when it is small or asked for, shown in the form that fits.

import * as api from "./api.js";
import { el, field, fill, table } from "./dom.js";
import * as hl7 from "./hl7.js";
import { HEX_MAX, TEXT_MAX, decode, formOf, hex, indent, visible } from "./readable.js";
import { bytes as size, count } from "./words.js";

/** A body up to so many bytes is loaded unasked. */
const UNASKED_MAX = 1 << 20;
/** Segments of an HL7 message that are shown. */
const SEGMENTS_MAX = 300;
const FORMS = [["hl7", "HL7"], ["json", "JSON"], ["text", "Text"], ["hex", "Hex"]];

/** The section of a message's body. */
export function bodySection(message, signal) {
  const place = el("div", { "aria-live": "polite" });
  const section = el("section", { "aria-labelledby": "body-head" },
    el("h2", { id: "body-head" }, "Body"), place);
  const load = async () => {
    fill(place, el("p", {}, "Loading …"));
    try {
      show(place, message, await api.getBytes(`/api/v1/messages/${message.id}/body`, signal));
    } catch (error) {
      if (error.name !== "AbortError") fill(place, el("p", { class: "bad" }, error.message));
    }
  };
  if (message.status === "duplicate") fill(place, el("p", {}, "It repeats another message, which has the same body."));
  else if (message.body_bytes <= UNASKED_MAX) load();
  else fill(place, el("button", { type: "button", onclick: load }, `Load ${size(message.body_bytes)}`));
  return section;
}

/** The section of what senders were given, each loaded when it is asked for. */
export function outputsSection(message, outputs, signal) {
  const place = el("div", { "aria-live": "polite" });
  const load = async (output) => {
    fill(place, el("p", {}, "Loading …"));
    try {
      const path = `/api/v1/messages/${message.id}/outputs/${encodeURIComponent(output.destination)}`;
      show(place, { id: `${message.id}-${output.destination}` }, await api.getBytes(path, signal), "output-form");
    } catch (error) {
      if (error.name !== "AbortError") fill(place, el("p", { class: "bad" }, error.message));
    }
  };
  const columns = ["Destination", "Round", "Attempt", "Size", "What the sender was given"];
  const kinds = { same: "as received" };
  const left = { "too-large": "too large to keep", "no-room": "not kept: the store was full" };
  const made = table("Outputs", columns, outputs.map((one) => [
    one.destination, count(one.round), count(one.attempt), size(one.body_bytes),
    left[one.body] ?? el("button", { type: "button", onclick: () => load(one) },
      `Show ${kinds[one.body] ?? "what was made"}`),
  ]));
  return el("section", { "aria-label": "What senders were given" }, made, place);
}

function show(place, message, bytes, id = "form") {
  const best = formOf(bytes);
  const shown = el("div", { class: "body" });
  const choice = el("select", { id },
    FORMS.map(([form, name]) => el("option", { value: form, selected: form === best }, name)));
  const choose = () => fill(shown, inForm(choice.value, bytes));
  choice.addEventListener("change", choose);
  choose();
  const save = el("button", { type: "button", onclick: () => saveAs(message, bytes) }, "Save the bytes");
  fill(place,
    el("div", { class: "controls" }, field("Shown as", choice), save,
      el("span", { class: "quiet" }, `${count(bytes.length)} bytes`)),
    shown);
}

function inForm(form, bytes) {
  if (form === "hex") return asHex(bytes);
  const decoded = decode(bytes);
  if (!decoded) return [el("p", {}, "These bytes are no text."), asHex(bytes)];
  if (form === "hl7") return asHl7(decoded.text);
  if (form === "json") {
    const text = indent(decoded.text);
    return text === null ? el("p", {}, "This is no JSON.") : asText(text, decoded.charset);
  }
  return asText(visible(decoded.text), decoded.charset);
}

function asText(text, charset) {
  const shown = text.slice(0, TEXT_MAX);
  return [
    el("pre", { tabindex: "0", "aria-label": "The body as text" }, shown),
    charset !== "utf-8" && el("p", { class: "quiet" }, `Not UTF-8; read as ${charset}.`),
    shown.length < text.length && left(shown.length, text.length, "characters"),
  ];
}

function asHex(bytes) {
  return [
    el("pre", { tabindex: "0", "aria-label": "The body as hexadecimal bytes" }, hex(bytes)),
    bytes.length > HEX_MAX && left(HEX_MAX, bytes.length, "bytes"),
  ];
}

function left(shown, all, what) {
  return el("p", { class: "quiet" }, `The first ${count(shown)} of ${count(all)} ${what}. Save the bytes to see all of them.`);
}

function asHl7(text) {
  const message = hl7.parse(text, SEGMENTS_MAX);
  if (!message) return el("p", {}, "This is no HL7 v2 message: it does not begin with MSH and its delimiters.");
  const columns = ["Field", "Value"];
  const made = table(`${message.segments.length} segments, delimiters ${message.delimiters.field}${message.delimiters.encoding}`, columns, []);
  made.classList.add("hl7", "pairs");
  made.tBodies[0].remove();
  for (const [at, segment] of message.segments.entries()) made.append(segmentBody(segment, at, columns));
  const all = message.segments.length + message.left_out;
  return [made, message.left_out > 0 && left(message.segments.length, all, "segments")];
}

function segmentBody(segment, at, columns) {
  const id = `segment-${at}`;
  const head = el("tr", { role: "row", class: "segment" },
    el("th", { scope: "rowgroup", colspan: "2", role: "rowheader", id }, segment.name));
  const rows = segment.fields.map((field) => el("tr", { role: "row" },
    el("th", { scope: "row", role: "rowheader", "data-label": columns[0] }, `${segment.name}-${field.number}`),
    el("td", { role: "cell", "data-label": columns[1] }, field.repetitions.map(repetition))));
  return el("tbody", { role: "rowgroup", "aria-labelledby": id }, head, rows);
}

function repetition(components) {
  if (components.length === 1 && components[0].number === 1) return el("div", { class: "value" }, components[0].text);
  return el("ol", { class: "components" },
    components.map(({ number, text }) => el("li", { value: number }, text)));
}

function saveAs(message, bytes) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  el("a", { href: url, download: `message-${message.id}.bin` }).click();
  URL.revokeObjectURL(url);
}
