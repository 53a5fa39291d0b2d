// The engine's API: the token, requests, and the stream of changes.

const KEY = "portway-token";

/** What the engine answered instead of what was asked for. */
export class ApiError extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

async function ask(path, options = {}) {
  const headers = { authorization: `Bearer ${token.get()}`, ...options.headers };
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "the engine does not answer");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(response.status, body.code ?? "", body.message ?? `status ${response.status}`);
}

export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

export async function getBytes(path, signal) {
  return new Uint8Array(await (await ask(path, { signal })).arrayBuffer());
}

export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  return (await ask(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/**
 * The changes of the engine until the stream ends or is aborted; `hear` gets the kind and the data
 * of each event. A browser's own EventSource cannot send the token.
 */
export async function stream(path, hear, signal) {
  const response = await ask(path, { signal, headers: { accept: "text/event-stream" } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader(hear);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    events.take(value);
  }
}

/** Cuts server-sent events out of text that comes in pieces. */
export class EventReader {
  constructor(hear) {
    this.hear = hear;
    this.rest = "";
    this.kind = "";
    this.data = [];
  }

  take(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    for (const line of lines) this.line(line);
  }

  line(line) {
    if (line === "") {
      if (this.data.length) this.hear(this.kind, JSON.parse(this.data.join("\n")));
      this.kind = "";
      this.data = [];
    } else if (line.startsWith("event: ")) {
      this.kind = line.slice(7);
    } else if (line.startsWith("data: ")) {
      this.data.push(line.slice(6));
    }
  }
}
