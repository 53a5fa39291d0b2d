// What the engine is doing now: kept up to date by the stream, or by asking where that is not to
// be had.

import * as api from "./api.js";
import { Rates } from "./rates.js";

/** Between two tries of the stream; doubled while it fails. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** Between two questions while the engine has no stream to give. */
const ASK_MS = 5_000;

export class Live {
  /** `changed` is called after every change; `refused` when the token is no longer taken. */
  constructor(changed, refused) {
    this.changed = changed;
    this.refused = refused;
    this.clear();
  }

  clear() {
    this.engine = null;
    this.interfaces = new Map();
    this.rates = new Rates();
    this.link = "connecting";
    this.trouble = null;
  }

  start() {
    if (this.abort) return;
    this.abort = new AbortController();
    this.run(this.abort.signal);
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
  }

  async run(signal) {
    let wait = RETRY_MS;
    while (!signal.aborted) {
      try {
        await api.stream("/api/v1/stream", (kind, data) => {
          wait = RETRY_MS;
          this.hear(kind, data);
        }, signal);
        // It ended in order, as each does now and then.
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 401) return this.refused();
        if (error.status === 503) await this.poll(signal);
        else this.lost("reconnecting", error.message);
      }
      await pause(wait, signal);
      wait = Math.min(wait * 2, RETRY_MAX_MS);
    }
  }

  /** Others have all the streams: ask now and then instead. */
  async poll(signal) {
    try {
      const status = await api.get("/api/v1/status", signal);
      const { version, project, state, started_at } = status.engine;
      const { notes, away } = status.store;
      this.hear("engine", { version, project, state, started_at, intake: status.intake, notes, away });
      for (const one of status.interfaces) this.hear("interface", one);
      await pause(ASK_MS, signal);
    } catch (error) {
      if (!signal.aborted) this.lost("reconnecting", error.message);
    }
  }

  lost(link, trouble) {
    this.link = link;
    this.trouble = trouble;
    this.changed();
  }

  hear(kind, data) {
    if (kind === "trouble") return this.lost("live", data.message);
    this.link = "live";
    this.trouble = null;
    if (kind === "engine") {
      this.engine = data;
      this.rates.read("stored", data.intake.stored);
    } else if (kind === "interface") {
      this.interfaces.set(data.name, data);
      this.rates.read(`in ${data.name}`, data.items.messages);
      for (const one of data.destinations) {
        this.rates.read(`out ${data.name} ${one.name}`, one.counts.sent);
      }
    }
    this.changed();
  }
}

function pause(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    }, { once: true });
  });
}
