// Numbers, times and sizes as people read them.

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function count(value) {
  return number.format(value);
}

/** So many of something: `1 message`, `3 messages`. */
export function many(value, one, more = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : more}`;
}

export function rate(perSecond) {
  if (perSecond === null) return "–";
  if (perSecond === 0) return "0/s";
  if (perSecond < 0.1) return "< 0.1/s";
  return `${perSecond < 10 ? fine.format(perSecond) : number.format(perSecond)}/s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 ? value : fine.format(value)} ${units[at]}`;
}

/** A duration in the two units that say it best. */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  if (first < 0) return "0 s";
  const shown = parts.slice(first, first + 2).filter(([value]) => value > 0);
  return shown.map(([value, unit]) => `${value} ${unit}`).join(" ");
}

/** How long ago a time of the API was. */
export function ago(time, now = Date.now()) {
  return time ? duration(now - Date.parse(time)) : "–";
}

/** In how long a time of the API comes; `now` when it is over. */
export function ahead(time, now = Date.now()) {
  const wait = Date.parse(time) - now;
  return wait > 1000 ? `in ${duration(wait)}` : "now";
}

/** A time of the API in this browser's zone, to the millisecond. */
export function clock(time) {
  if (!time) return "–";
  const at = new Date(time);
  const two = (value) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const of_day = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${day} ${of_day}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}
