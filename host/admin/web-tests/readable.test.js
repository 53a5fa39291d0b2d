// What a message's bytes look like, and how HL7 is cut.

import assert from "node:assert/strict";
import test from "node:test";

import * as hl7 from "../web/hl7.js";
import { HEX_MAX, decode, formOf, hex, indent, visible } from "../web/readable.js";

const bytes = (text) => new TextEncoder().encode(text);

test("the form that fits is chosen", () => {
  assert.equal(formOf(bytes("MSH|^~\\&|LAB\rPID|1\r")), "hl7");
  assert.equal(formOf(bytes(' {"a": [1, 2]}')), "json");
  assert.equal(formOf(bytes("[1, 2")), "text");
  assert.equal(formOf(bytes("plain words, 17 of them")), "text");
  assert.equal(formOf(new Uint8Array([0, 1, 2, 3, 255, 254])), "hex");
  assert.equal(formOf(bytes("")), "text");
});

test("bytes that are not UTF-8 are read as windows-1252", () => {
  assert.deepEqual(decode(new Uint8Array([77, 252, 108])), { text: "Mül", charset: "windows-1252" });
  assert.deepEqual(decode(bytes("Mül")), { text: "Mül", charset: "utf-8" });
});

test("json is indented and its tokens stay as they are", () => {
  const text = '{"n":12345678901234567890,"e":1.0e+5,"s":"a\\u0041 {\\"x\\": [,]}","l":[],"o":{},"d":[{"a":null}]}';
  const wanted = `{
  "n": 12345678901234567890,
  "e": 1.0e+5,
  "s": "a\\u0041 {\\"x\\": [,]}",
  "l": [],
  "o": {},
  "d": [
    {
      "a": null
    }
  ]
}`;
  assert.equal(indent(text), wanted);
  assert.equal(indent("{"), null);
  assert.equal(indent("nothing"), null);
  assert.ok(indent("[".repeat(500) + "]".repeat(500)).length > 1_000);
});

test("control characters can be seen and line ends end lines", () => {
  assert.equal(visible("a\u0000b\u001bc\rd\r\ne\tf\u007f"), "a␀b␛c\nd\ne\tf␡");
});

test("hex shows where, what and in ASCII, up to its limit", () => {
  assert.equal(hex(bytes("MSH|^~\\&|<b>\r\n")),
    "00000000  4d 53 48 7c 5e 7e 5c 26  7c 3c 62 3e 0d 0a        MSH|^~\\&|<b>··");
  assert.equal(hex(new Uint8Array(HEX_MAX + 100)).split("\n").length, HEX_MAX / 16);
});

test("hl7 is cut with the delimiters of its MSH", () => {
  const message = hl7.parse("MSH|^~\\&|LAB\rPID|1||P1^^^H~P2||A\\T\\B^C\rZZZ|x\r");
  assert.equal(message.delimiters.encoding, "^~\\&");
  const [msh, pid] = message.segments;
  assert.deepEqual(msh.fields.map((field) => [field.number, field.raw]), [[1, "|"], [2, "^~\\&"], [3, "LAB"]]);
  assert.deepEqual(pid.fields.map((field) => field.number), [1, 3, 5]);
  assert.deepEqual(pid.fields[1].repetitions, [
    [{ number: 1, text: "P1" }, { number: 4, text: "H" }],
    [{ number: 1, text: "P2" }],
  ]);
  assert.equal(pid.fields[2].repetitions[0][0].text, "A&B");
  const odd = hl7.parse("MSH#*!/@#LAB\nPID#1##A*B\n");
  assert.deepEqual(odd.segments[1].fields[1].repetitions[0].map((one) => one.text), ["A", "B"]);
});

test("escapes that are no delimiters stay, and so do open ones", () => {
  const value = (text) => hl7.parse(`MSH|^~\\&|${text}\r`).segments[0].fields[2].raw && hl7.parse(`MSH|^~\\&|${text}\r`).segments[0].fields[2].repetitions[0][0].text;
  assert.equal(value("a\\F\\b\\S\\c\\E\\d"), "a|b^c\\d");
  assert.equal(value("a\\.br\\b"), "a\\.br\\b");
  assert.equal(value("a\\F"), "a\\F");
});

test("what is not hl7 is told, and long messages are cut", () => {
  for (const text of ["", "MSH", "MSHabcdefgh", "PID|1", "MSH|\r|||||"]) assert.equal(hl7.parse(text), null, text);
  const long = hl7.parse(`MSH|^~\\&|\r${"OBX|1\r".repeat(20)}`, 5);
  assert.deepEqual([long.segments.length, long.left_out], [5, 16]);
});
