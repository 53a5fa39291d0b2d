// Goes through the web page of a running engine in a real browser, by keyboard alone.
//
// Arguments: where the tools are, the page's address, the control token, the address of the MLLP
// source, a folder for pictures, how many messages are there. Ends with 0 and a line for each thing that was seen, else with the
// reason.

import assert from "node:assert/strict";
import { readFileSync, rmdirSync } from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";

const [tools, url, token, mllp, pictures] = process.argv.slice(2);
const require = createRequire(path.join(tools, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** It comes after those that are there already. */
const HOSTILE_ID = Number(process.argv[7]) + 1;
/** For anything on a busy machine. */
const PATIENCE_MS = 60_000;
/** Tabs from one thing to the next, at most. */
const TABS_MAX = 60;
/** What a page must never make HTML of. */
const HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});
try {
  await refusesWrongTokens();
  await sendHostile();
  await goesByKeyboard();
} finally {
  await browser.close();
}
console.log("browser: all seen");

/** A browser itself writes the 401 to the console, so this is a page of its own. */
async function refusesWrongTokens() {
  const page = await open({});
  await page.keyboard.type("0".repeat(64));
  await page.keyboard.press("Enter");
  await page.getByText("This is not the token of the engine that runs now.").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0, "a wrong token is kept");
  await page.context().close();
  seen("a wrong token is refused");
}

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url);
  await focused(page, "INPUT");
  return page;
}

/** A message whose field would be harm if it were ever read as HTML. */
function sendHostile() {
  const fields = ["MSH|^~\\&|LAB|A|B|C|20260101120000||ORU^R01|HOSTILE1|P|2.5", `PID|1||P<b>1^^^H||${HOSTILE}^Ada`,
    "OBR|1|1|1|GLU^Glucose", `OBX|1|ST|GLU^Glucose||${HOSTILE}|mg/dl|||||F`];
  const [host, port] = mllp.split(":");
  return new Promise((done, failed) => {
    const socket = net.connect(Number(port), host, () => socket.write(`\x0b${fields.join("\r")}\r\x1c\r`));
    socket.setTimeout(PATIENCE_MS, () => failed(new Error("no acknowledgement")));
    socket.once("error", failed);
    socket.once("data", (answer) => {
      socket.end();
      answer.includes("MSA|AA") ? done() : failed(new Error(`not acknowledged: ${answer}`));
    });
  });
}

async function goesByKeyboard() {
  const page = await open({});
  const complaints = listen(page);
  await page.keyboard.type(token);
  await page.keyboard.press("Enter");
  await overview(page);
  await list(page);
  await message(page);
  await widths(page);
  assert.deepEqual(complaints, [], "the browser complains");
  seen("no complaint of the browser");
  await engineEnds(page);
  await page.context().close();
}

/** Everything that a browser complains of: scripts, the policy, requests. */
function listen(page) {
  const complaints = [];
  page.on("console", (line) => {
    if (["error", "warning"].includes(line.type())) complaints.push(line.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  return complaints;
}

async function overview(page) {
  await focused(page, "H1", "Overview");
  const lab = page.getByRole("article", { name: "lab" });
  await lab.waitFor();
  const table = lab.getByRole("table", { name: "Destinations of lab" });
  await table.getByRole("row", { name: /archive.*file.*running/ }).waitFor();
  await table.getByRole("row", { name: /results.*http/ }).waitFor();
  // Nobody takes the results: the page says so, and why.
  await page.locator("#main .stuck li", { hasText: /lab → results.*cannot be reached/ }).first().waitFor();
  seen("an interface, its destinations, what is stuck");
  await resume(page, table);
  const repeated = page.locator("dl.facts > div", { hasText: "Repeated" }).locator("dd");
  assert.equal(await repeated.textContent(), "0");
  await sendHostile();
  await page.waitForFunction((node) => node.textContent === "1", await repeated.elementHandle());
  seen("a new message without a reload");
  await accessible(page, "overview");
}

/** A folder stood where a file is to be written: it goes, and the destination is started again. */
async function resume(page, table) {
  await table.getByRole("row", { name: /copy.*stopped/ }).waitFor();
  rmdirSync(path.join(pictures, "../out/copy"));
  await tabTo(page, "BUTTON", "Resume lab → copy");
  await page.keyboard.press("Enter");
  await table.getByRole("row", { name: /copy.*running/ }).waitFor();
  seen("a stopped destination, started again");
}

async function list(page) {
  await tabTo(page, "A", "Messages of lab");
  await page.keyboard.press("Enter");
  await focused(page, "H1", "Messages");
  await page.getByRole("table", { name: "Messages of lab, newest first" }).waitFor();
  await tabTo(page, "SELECT", "", "status");
  await page.keyboard.type("duplicate");
  await tabTo(page, "BUTTON", "Show");
  await page.keyboard.press("Enter");
  // The hostile message came twice.
  await page.getByRole("table", { name: "Messages duplicate of lab, newest first" }).waitFor();
  // The names are there also where the page begins with the list.
  await page.reload();
  await page.locator("#of option", { hasText: "lab" }).waitFor({ state: "attached" });
  assert.equal(await page.locator("#of").inputValue(), "lab");
  await page.getByRole("table", { name: "Messages duplicate of lab, newest first" }).waitFor();
  seen("a list and its filter, also after a reload");
  await accessible(page, "messages");
}

async function message(page) {
  const repeated = await page.locator("main tbody a").first().textContent();
  await tabTo(page, "A", repeated);
  await page.keyboard.press("Enter");
  await focused(page, "H1", `Message ${repeated}`);
  // Its body is that of the first.
  await tabTo(page, "A", /duplicate of/);
  await page.keyboard.press("Enter");
  await page.getByRole("table", { name: "Deliveries" }).getByRole("row", { name: /archive.*sent/ }).waitFor();
  const body = page.getByRole("table", { name: /segments, delimiters/ });
  await body.getByRole("row", { name: /PID-5/ }).waitFor();
  assert.ok((await body.textContent()).includes(HOSTILE), "the field is not shown as it is");
  assert.equal(await page.locator("main img, main script, main b").count(), 0, "bytes became HTML");
  seen("a message, its deliveries, its body as HL7");
  await accessible(page, "message");
  for (const [form, text] of [["Hex", "4d 53 48 7c"], ["Text", "MSH|^~\\&|LAB"], ["JSON", "This is no JSON."]]) {
    await tabTo(page, "SELECT", "", "form");
    await page.keyboard.type(form);
    await page.getByText(text).first().waitFor();
  }
  seen("its body in other forms");
  await page.getByRole("table", { name: "Outputs" }).getByRole("row", { name: /archive/ }).waitFor();
  await tabTo(page, "BUTTON", "Show what was made");
  await page.keyboard.press("Enter");
  await page.locator("#output-form").waitFor();
  assert.equal(await page.locator("main img, main script, main b").count(), 0, "an output became HTML");
  seen("what a sender was given");
  await accessible(page, "message with an output");
}

/** Nothing is wider than the window, in both schemes. */
async function widths(page) {
  for (const [width, scheme] of [[320, "light"], [320, "dark"], [1600, "light"], [1600, "dark"]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    for (const [name, hash] of [["overview", "#/"], ["messages", "#/messages"], ["message", `#/messages/${HOSTILE_ID}`]]) {
      await page.evaluate((hash) => { location.hash = hash; }, hash);
      await page.locator("main table").first().waitFor();
      await page.waitForFunction(() => !document.querySelector("main").textContent.includes("Loading …"));
      const wide = await page.evaluate(() => document.scrollingElement.scrollWidth);
      await page.screenshot({ path: path.join(pictures, `${name}-${width}-${scheme}.png`), fullPage: true });
      assert.ok(wide <= width, `${name} is ${wide} px wide in a window of ${width}`);
      await accessible(page, `${name} at ${width} px, ${scheme}`);
    }
  }
  seen("320 to 1600 px, light and dark");
}

/** An engine that ends is told, and what was known stays on the page. */
async function engineEnds(page) {
  await page.goto(`${url}#/`);
  await page.getByRole("article", { name: "lab" }).waitFor();
  const { engine } = await (await fetch(`${url}api/v1/status`, { headers: { authorization: `Bearer ${token}` } })).json();
  process.kill(engine.process_id, "SIGTERM");
  await page.locator("#link", { hasText: "reconnecting" }).waitFor();
  await page.getByRole("alert").getByText("the engine does not answer").waitFor();
  assert.equal(await page.getByRole("article", { name: "lab" }).count(), 1);
  seen("the end of the engine");
}

/** What axe finds: names, roles, contrast, headings, landmarks. */
async function accessible(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const told = found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
  assert.deepEqual(told, [], where);
}

/** Presses Tab until the focus is there; what has it must show that it does. */
async function tabTo(page, tag, text, id) {
  for (let tabs = 0; tabs < TABS_MAX; tabs += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const node = document.activeElement;
      const style = getComputedStyle(node);
      const outline = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
      return { tag: node.tagName, text: node.textContent.trim(), name: node.name || node.id, id: node.id, outline };
    });
    const is_text = text instanceof RegExp ? text.test(at.text) : !text || at.text === text;
    if (at.tag === tag && is_text && (!id || [at.name, at.id].includes(id))) {
      assert.ok(at.outline, `the focus on ${tag} ${text} cannot be seen`);
      return;
    }
  }
  assert.fail(`${tag} ${text} ${id ?? ""} is not reached by Tab`);
}

async function focused(page, tag, text) {
  await page.waitForFunction(([tag, text]) => {
    const node = document.activeElement;
    return node?.tagName === tag && (!text || node.textContent === text);
  }, [tag, text]);
}

function seen(what) {
  console.log(`browser: ${what}`);
}
