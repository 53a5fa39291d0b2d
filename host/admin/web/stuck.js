// What needs a person, and why: from the engine's picture of itself.

import { ahead, ago, count, many } from "./words.js";

/** Messages at the heads of lanes that are linked in one line. */
const LINKS_MAX = 8;

/**
 * Everything that is stuck: `key` names it for as long as it is so, `text` says it, `links` lead
 * to more, `grave` tells what stands still from what goes on by itself, `resume` names a destination
 * that can be started again.
 */
export function stuck(live, now = Date.now()) {
  const found = [];
  const closed = live.engine?.intake.closed;
  if (closed) {
    found.push({ key: "intake", grave: true, text: `Nothing is taken in: ${closed.text} (${closed.code})` });
  }
  found.push(...ofStore(live.engine, now));
  for (const one of live.interfaces.values()) {
    found.push(...ofSource(one));
    for (const destination of one.destinations) found.push(...ofDestination(one, destination, now));
  }
  return found.sort((a, b) => Number(b.grave) - Number(a.grave));
}

function ofStore(engine, now) {
  const away = engine?.away;
  if (!away) return [];
  const told = away.read_at ? `what waits is as it was ${ago(away.read_at, now)} ago` : "what waits is not known";
  return [{ key: "store", grave: true, text: `The store cannot be read: ${away.why.text}; ${told}` }];
}

function ofSource(one) {
  const state = one.poll?.state;
  if (state !== "waiting" && state !== "misconfigured") return [];
  const grave = state === "misconfigured";
  return [{ key: `poll ${one.name}`, grave, text: `${one.name}: its source is ${state}: ${one.poll.reason ?? ""}` }];
}

function ofDestination(one, destination, now) {
  const name = `${one.name} → ${destination.name}`;
  const key = `${one.name}/${destination.name}`;
  const found = [];
  if (destination.state === "stopped") {
    found.push({
      key: `${key} stopped`, grave: true, resume: { interface: one.name, destination: destination.name },
      text: `${name}: stopped for ${ago(destination.since, now)}: ${destination.why?.text ?? ""} (${destination.why?.code ?? ""})`,
    });
  } else if (destination.state === "waiting") {
    found.push({
      key: `${key} away`, grave: false,
      text: `${name}: away for ${ago(destination.since, now)}, asked again ${ahead(destination.until, now)}: ${destination.why?.text ?? ""}`,
    });
  }
  if (destination.state === "paused") {
    const { author = "", reason = "" } = destination.pause ?? {};
    found.push({
      key: `${key} paused`, grave: true, resume: { interface: one.name, destination: destination.name },
      text: `${name}: paused for ${ago(destination.since, now)} by ${author}: ${reason}`,
    });
  }
  found.push(...ofLanes(name, key, destination, now));
  if (destination.quarantined > 0) {
    const query = new URLSearchParams({ interface: one.name, destination: destination.name, status: "quarantined" });
    found.push({
      key: `${key} quarantined`, grave: true, links: [{ href: `#/messages?${query}`, text: "show them" }],
      text: `${name}: ${many(destination.quarantined, "delivery", "deliveries")} quarantined`,
    });
  }
  return found;
}

/** Lanes that wait for the same reason are one line. */
function ofLanes(name, key, destination, now) {
  const groups = new Map();
  for (const lane of destination.blocked) {
    const of_group = `${lane.due_at ? "due" : "held"} ${lane.why}`;
    groups.set(of_group, [...(groups.get(of_group) ?? []), lane]);
  }
  const found = [...groups].map(([of_group, lanes]) => lineOf(name, `${key} lanes ${of_group}`, lanes, now));
  const untold = destination.lanes_blocked - destination.blocked.length;
  if (untold > 0) {
    found.push({ key: `${key} lanes`, grave: false, text: `${name}: ${many(untold, "more lane")} ${untold === 1 ? "waits" : "wait"}` });
  }
  return found;
}

function lineOf(name, key, unordered, now) {
  // By message, so that links stay in their places.
  const lanes = unordered.toSorted((a, b) => a.message - b.message);
  const [first] = lanes;
  const grave = !first.due_at;
  const soonest = lanes.map((lane) => lane.due_at).sort()[0];
  const when = grave ? "until somebody resends or dismisses its message" : `next try ${ahead(soonest, now)}`;
  const tried = many(Math.max(...lanes.map((lane) => lane.attempts)), "attempt");
  const who = lanes.length === 1 ? `lane ${first.lane} waits` : `${count(lanes.length)} lanes wait`;
  const links = lanes.slice(0, LINKS_MAX).map((lane) => ({ href: `#/messages/${lane.message}`, text: `message ${lane.message}` }));
  return { key, grave, links, text: `${name}: ${who}, ${when}, after ${tried}: ${first.why}` };
}
