// Talking to the node. Server-sent events are read through fetch, because an
// EventSource cannot send the token in a header, and a token in an address ends
// up in logs.

const KEY = 'subak-token';

// The token lives in sessionStorage: this tab only, gone with it.
export const token = {
  get: () => sessionStorage.getItem(KEY) ?? '',
  set: (value) => sessionStorage.setItem(KEY, value),
  clear: () => sessionStorage.removeItem(KEY),
};

// Refused is a response that is not 2xx; status is its HTTP status.
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const headers = {};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  const response = await fetch(path, { ...options, headers, cache: 'no-store', credentials: 'omit' });
  if (response.ok) return response;
  let message = `HTTP ${response.status}`;
  try {
    message = (await response.json()).error || message;
  } catch {
    // Not our JSON: a proxy in between, perhaps. The status says enough.
  }
  throw new Refused(response.status, message);
}

// get fetches JSON, giving up after 5 s.
export async function get(path, query = {}) {
  const search = new URLSearchParams(query).toString();
  const response = await ask(search ? `${path}?${search}` : path, { signal: AbortSignal.timeout(5000) });
  return response.json();
}

// post sends an empty POST and fetches JSON.
export async function post(path) {
  return (await ask(path, { method: 'POST', signal: AbortSignal.timeout(5000) })).json();
}

// parser returns a function that takes pieces of an event stream and calls
// emit({event, id, data}) for each whole event.
export function parser(emit) {
  let rest = '';
  return (piece) => {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { event: 'message', id: '', data: '' };
      for (const line of block.split('\n')) {
        const at = line.indexOf(': ');
        if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
      }
      if (event.data) emit(event);
    }
  };
}

const SILENCE = 5000; // ms without a byte after which a stream counts as dead
const WAITS = [500, 1000, 2000, 4000]; // ms before a new attempt, the last for ever

// Stream keeps one event stream open, for as long as it takes. handlers:
// status(status, millis), history(history), down(error), refused(error): the
// last one on 401, after which it rests until open is called again.
export class Stream {
  constructor(handlers) {
    this.handlers = handlers;
    this.run = 0; // counts opens; an older run stops by itself
  }

  // open starts over, asking for the details of one budget.
  open(budget) {
    const run = ++this.run;
    this.abort?.abort();
    this.loop(run, budget);
  }

  close() {
    this.run++;
    this.abort?.abort();
  }

  async loop(run, budget) {
    for (let attempt = 0; run === this.run; attempt++) {
      try {
        await this.read(budget, () => { attempt = 0; });
        throw new Error('the node closed the stream');
      } catch (error) {
        if (run !== this.run) return;
        if (error instanceof Refused && error.status === 401) {
          this.handlers.refused(error);
          return;
        }
        this.handlers.down(error);
      }
      await new Promise((resolve) => setTimeout(resolve, WAITS[Math.min(attempt, WAITS.length - 1)]));
    }
  }

  // read reads one stream to its end; alive is called for each piece.
  async read(budget, alive) {
    const abort = new AbortController();
    this.abort = abort;
    let watchdog = setTimeout(() => abort.abort(), SILENCE);
    try {
      const response = await ask(`/v1/events?${new URLSearchParams({ budget })}`, { signal: abort.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const feed = parser((event) => this.emit(event));
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => abort.abort(), SILENCE);
        alive();
        if (this.abort === abort) feed(value);
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  emit({ event, id, data }) {
    const value = JSON.parse(data);
    if (event === 'status') this.handlers.status(value, Number(id));
    else if (event === 'history') this.handlers.history(value);
  }
}
