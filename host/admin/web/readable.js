// A message's bytes as something to read: which form fits, and its text. Numbers and texts of JSON
// stay as they are written, since a browser would round long ones.

/** Bytes of a text that is shown, lines of hex, and how deep JSON is indented. */
export const TEXT_MAX = 256 << 10;
export const HEX_MAX = 8 << 10;
const INDENT_MAX = 40;

/** The text of the bytes and its character set; null: they are no text. */
export function decode(bytes) {
  for (const charset of ["utf-8", "windows-1252"]) {
    try {
      const text = new TextDecoder(charset, { fatal: true, ignoreBOM: false }).decode(bytes);
      return is_text(text) ? { text, charset } : null;
    } catch {
      // Not in this one.
    }
  }
  return null;
}

/** Few enough characters that no text has. */
function is_text(text) {
  const start = text.slice(0, 4096);
  const odd = start.match(/[\u0000-\u0008\u000e-\u001a\u007f\u0081\u008d\u008f\u0090\u009d]/g)?.length ?? 0;
  return odd * 50 <= start.length;
}

/** `hl7`, `json`, `text` or `hex`: the first that fits. */
export function formOf(bytes) {
  const decoded = decode(bytes);
  if (!decoded) return "hex";
  if (decoded.text.startsWith("MSH") && decoded.text.length >= 8) return "hl7";
  return is_json(decoded.text) ? "json" : "text";
}

function is_json(text) {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON with a line for each member; null if it is none. */
export function indent(text) {
  if (!is_json(text)) return null;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g) ?? [];
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, INDENT_MAX))}`;
  tokens.forEach((token, at) => {
    const opened = out.endsWith("{") || out.endsWith("[");
    if (token === "}" || token === "]") {
      depth -= 1;
      const is_empty = tokens[at - 1] === "{" || tokens[at - 1] === "[";
      out += is_empty ? token : line() + token;
    } else {
      if (opened && at > 0 && (tokens[at - 1] === "{" || tokens[at - 1] === "[")) out += line();
      out += token;
      if (token === "{" || token === "[") depth += 1;
      else if (token === ",") out += line();
      else if (token === ":") out += " ";
    }
  });
  return out;
}

/** Text whose control characters can be seen; line ends of any kind end lines. */
export function visible(text) {
  const lines = text.replace(/\r\n|\r/g, "\n");
  return lines.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (character) => {
    const code = character.charCodeAt(0);
    return String.fromCharCode(code === 0x7f ? 0x2421 : 0x2400 + code);
  });
}

/** Sixteen bytes a line: where, in hex, in ASCII. */
export function hex(bytes) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, HEX_MAX); at += 16) {
    const part = bytes.slice(at, at + 16);
    const digits = [...part].map((byte) => byte.toString(16).padStart(2, "0"));
    const left = digits.slice(0, 8).join(" ").padEnd(23);
    const right = digits.slice(8).join(" ").padEnd(23);
    const ascii = [...part].map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·"));
    lines.push(`${at.toString(16).padStart(8, "0")}  ${left}  ${right}  ${ascii.join("")}`);
  }
  return lines.join("\n");
}
