// The page as a whole: asks for the token once, then shows what the address names.

import * as api from "./api.js";
import { announce, el, fill, setText } from "./dom.js";
import { Live } from "./live.js";
import { MessageFilter, messageList, messagePage } from "./messages.js";
import { Overview } from "./overview.js";

/** Between two looks at the clock: ages and rates move without a change. */
const TICK_MS = 1_000;

const main = document.getElementById("main");
const live = new Live(soon, () => askForToken("The token is not taken any more: the engine has a new one."));
/** What is shown and follows the engine: it has an `update`. */
let shown = null;
let is_due = false;
let view = new AbortController();
let drawn = null;

/** Draws what the address names; the focus goes to its heading. */
async function show() {
  if (!api.token.get()) return askForToken("");
  view.abort();
  view = new AbortController();
  shown = null;
  frame(true);
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const message = /^\/messages\/(\d+)$/.exec(path);
  const is_new = drawn !== path;
  drawn = path;
  try {
    if (message) await messagePage(main, message[1], view.signal);
    else if (path === "/messages") {
      const asked = new URLSearchParams(query);
      shown = new MessageFilter(asked, live);
      await messageList(main, asked, shown, view.signal);
    } else shown = new Overview(main, live);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.status === 401) return askForToken("The token is not taken any more: the engine has a new one.");
    fill(main, el("h1", { tabindex: "-1" }, "It did not work"), el("p", { class: "bad", role: "alert" }, error.message));
  }
  const head = main.querySelector("h1");
  document.title = `${head.textContent} – Portway`;
  head.tabIndex = -1;
  if (is_new) head.focus();
}

function frame(is_in) {
  document.getElementById("pages").hidden = !is_in;
  document.getElementById("leave").hidden = !is_in;
  for (const link of document.querySelectorAll("#pages a")) {
    const is_here = link.hash.slice(1) === (location.hash.slice(1).startsWith("/messages") ? "/messages" : "/");
    if (is_here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function changed() {
  const { engine, link } = live;
  setText(document.getElementById("engine"), engine ? `${engine.project} · ${engine.version}` : "");
  const of_link = link === "live" ? engine?.state ?? "live" : link;
  const state = live.abort ? of_link : "";
  const tag = document.getElementById("link");
  if (tag.textContent !== state) {
    tag.className = `tag ${state}`;
    setText(tag, state);
    if (state) announce(`The engine: ${state}`);
  }
  shown?.update();
}

/** A thousand changes that come at once are drawn once. */
function soon() {
  if (is_due) return;
  is_due = true;
  requestAnimationFrame(() => {
    is_due = false;
    changed();
  });
}

function askForToken(why) {
  view.abort();
  live.stop();
  live.clear();
  api.token.forget();
  shown = null;
  drawn = null;
  frame(false);
  changed();
  const said = el("p", { class: "bad", role: "alert" }, why);
  const field = el("input", { id: "token", type: "password", autocomplete: "off", required: true, "aria-describedby": "where" });
  const form = el("form", { class: "token" }, el("label", { for: "token" }, "Control token"), field,
    el("button", { type: "submit" }, "Go in"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    api.token.set(field.value.trim());
    try {
      await api.get("/api/v1/refusals");
    } catch (error) {
      api.token.forget();
      fill(said, error.status === 401 ? "This is not the token of the engine that runs now." : error.message);
      return field.select();
    }
    live.start();
    show();
  });
  fill(main, el("h1", {}, "Portway"), said, form,
    el("p", { id: "where" }, "It is the text ", el("code", {}, "token"), " in the file ", el("code", {}, "control.json"),
      " of the engine's data folder, a new one at each start. This tab keeps it until it is closed."));
  document.title = "Portway";
  field.focus();
}

document.getElementById("leave").addEventListener("click", () => askForToken(""));
document.querySelector(".skip").addEventListener("click", (event) => {
  // The address names what is shown, so the focus goes there without it.
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", show);
// A page that nobody looks at holds no stream.
document.addEventListener("visibilitychange", () => {
  if (!api.token.get()) return;
  if (document.hidden) live.stop();
  else live.start();
});
setInterval(() => shown?.update(), TICK_MS);
if (api.token.get() && !document.hidden) live.start();
show();
