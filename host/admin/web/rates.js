// Rates from readings of counters: what was counted in the last seconds.

/** How far back a rate looks. */
const WINDOW_MS = 10_000;
/** Below this a rate would be a guess. */
const SPAN_MIN_MS = 1_500;

export class Rates {
  constructor() {
    this.readings = new Map();
  }

  /** A counter was read. One that fell began anew, as after a restart. */
  read(key, value, at = Date.now()) {
    const all = this.readings.get(key) ?? [];
    if (all.length && all[all.length - 1].value > value) all.length = 0;
    all.push({ at, value });
    // One reading from before the window stays: the window begins with its value.
    while (all.length > 2 && all[1].at <= at - WINDOW_MS) all.shift();
    this.readings.set(key, all);
  }

  /** Per second; null while too little is known. */
  of(key, now = Date.now()) {
    const all = this.readings.get(key);
    if (!all || now - all[0].at < SPAN_MIN_MS) return null;
    const start = now - WINDOW_MS;
    let base = all[0];
    for (const reading of all) if (reading.at <= start) base = reading;
    const since = Math.max(base.at, start);
    return ((all[all.length - 1].value - base.value) * 1000) / (now - since);
  }

  forget() {
    this.readings.clear();
  }
}
