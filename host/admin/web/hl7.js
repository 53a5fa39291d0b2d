// HL7 v2 as a table needs it: segments, fields, repetitions, components. The delimiters are those
// of MSH; what is not HL7 gives null.

/** What a segment's text is cut with. */
function delimiters(text) {
  if (!text.startsWith("MSH") || text.length < 8) return null;
  const field = text[3];
  const end = text.indexOf(field, 4);
  const encoding = text.slice(4, end < 0 ? undefined : end);
  if (/[\r\n\w]/.test(field) || /[\r\n]/.test(encoding)) return null;
  if (encoding.length < 1 || encoding.length > 5) return null;
  const [component, repetition, escape, subcomponent] = encoding;
  return { field, component, repetition, escape, subcomponent, encoding };
}

/** The segments of a message in their order, at most `segments_max` of them. */
export function parse(text, segments_max = Infinity) {
  const cut = delimiters(text);
  if (!cut) return null;
  const lines = text.split(/\r\n|\r|\n/).filter((line) => line !== "");
  const segments = lines.slice(0, segments_max).map((line) => segment(line, cut));
  return { delimiters: cut, segments, left_out: lines.length - segments.length };
}

function segment(line, cut) {
  const [name, ...texts] = line.split(cut.field);
  const fields = [];
  const has_own_delimiters = name === "MSH" || name === "BHS" || name === "FHS";
  // The delimiters are fields themselves, and nothing in them is to be cut.
  if (has_own_delimiters) {
    fields.push(plain(1, cut.field), plain(2, texts.shift() ?? ""));
  }
  const first = has_own_delimiters ? 3 : 1;
  texts.forEach((value, at) => {
    if (value !== "") fields.push(field(first + at, value, cut));
  });
  return { name, fields };
}

function plain(number, raw) {
  return { number, raw, repetitions: [[{ number: 1, text: raw }]] };
}

function field(number, raw, cut) {
  const repetitions = split(raw, cut.repetition).map((repetition) => {
    const components = split(repetition, cut.component);
    return components
      .map((text, at) => ({ number: at + 1, text: unescape(text, cut) }))
      .filter((component) => component.text !== "" || components.length === 1);
  });
  return { number, raw, repetitions };
}

function split(text, delimiter) {
  return delimiter ? text.split(delimiter) : [text];
}

/** The escapes that stand for delimiters; others stay as they are written. */
function unescape(text, cut) {
  if (!cut.escape || !text.includes(cut.escape)) return text;
  const meant = { F: cut.field, S: cut.component, T: cut.subcomponent, R: cut.repetition, E: cut.escape };
  const parts = text.split(cut.escape);
  let out = parts[0];
  for (let at = 1; at < parts.length; at += 1) {
    const letter = meant[parts[at]];
    const is_closed = at + 1 < parts.length;
    if (letter !== undefined && is_closed) {
      out += letter + parts[at + 1];
      at += 1;
    } else {
      out += cut.escape + parts[at];
    }
  }
  return out;
}
