// The dashboard: keeps one event stream open and redraws when it speaks.

import { byId, segments, text, attr } from './dom.js';
import { name, rate, span } from './format.js';
import { Stream, Refused, get, post, token } from './stream.js';
import * as verdict from './verdict.js';
import * as budgets from './budgets.js';
import * as flow from './flow.js';
import * as members from './members.js';
import * as node from './node.js';
import { Plot } from './plot.js';
import { Heat, METRICS } from './heat.js';
import { Explain } from './explain.js';

const STALE = 2500; // ms without data after which the page says so

const state = {
  status: null,
  budget: '', // the chosen one
  heard: 0, // performance.now() of the newest data
  problem: '', // why the stream is down
  lost: false, // whether the page shows that it has lost the node
  watch: new verdict.Watch(),
};

const plot = new Plot(byId('plot'), byId('plot-legend'));
const explain = new Explain(() => { heat.chosen = null; render(); });
const heat = new Heat(byId('heat'), (where, cls) => {
  heat.chosen = `${where}\0${cls}`;
  render();
  explain.open(state.budget, cls, where, current()?.unit ?? '/s');
});

const stream = new Stream({
  status(status, millis) {
    state.status = status;
    state.heard = performance.now();
    state.problem = '';
    state.watch.update(status.budgets ?? []);
    const b = current();
    if (b) plot.samples.add({ t: millis, limit: b.limit, share: b.sum_share, demand: b.sum_demand });
    render();
  },
  history(h) {
    if (h.budget === state.budget) plot.samples.load(h);
  },
  down(error) {
    state.problem = error.message;
    showLink();
  },
  refused: () => askToken(token.get() ? 'That token is no longer accepted.' : ''),
});

const current = () => state.status?.budgets?.find((b) => b.name === state.budget);

// choose switches the budget shown; the address remembers it.
function choose(budget) {
  if (budget !== state.budget) {
    plot.samples.points = [];
    explain.close();
  }
  state.budget = budget;
  history.replaceState(null, '', `#${new URLSearchParams({ budget })}`);
  stream.open(budget);
}

// start asks for the status once: it tells the budgets' names, and whether a
// token is needed.
async function start() {
  try {
    state.status = await get('/v1/status');
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      askToken(token.get() ? 'This token is not accepted.' : '');
      return;
    }
    state.problem = error.message;
    showLink();
    setTimeout(start, 2000);
    return;
  }
  byId('login').hidden = true;
  byId('main').hidden = false;
  byId('freeze').hidden = false;
  byId('sign-out').hidden = !token.get();
  state.heard = performance.now();
  const all = (state.status.budgets ?? []).map((b) => b.name);
  const wanted = new URLSearchParams(location.hash.slice(1)).get('budget');
  choose(all.includes(wanted) ? wanted : all[0] ?? '');
  render();
}

function askToken(message) {
  stream.close();
  token.clear();
  state.status = null;
  byId('main').hidden = true;
  byId('freeze').hidden = true;
  byId('sign-out').hidden = true;
  byId('frozen').hidden = true;
  byId('login').hidden = false;
  byId('login-error').textContent = message;
  byId('token').focus();
  showLink();
}

// render draws everything from the newest status. A hidden tab waits.
function render() {
  const s = state.status;
  if (!s || document.hidden) return;
  showLink();
  showVerdict();
  text(byId('whoami'), `node ${name(s.node)} \u00b7 cluster ${name(s.cluster)}`);
  text(byId('foot').firstElementChild, `Subak ${name(s.version)} \u00b7 everything here is as seen by ${name(s.node)}`);
  byId('links').hidden = Boolean(token.get()); // a plain link cannot carry the token
  showFrozen(s);
  budgets.show(s.budgets ?? [], state.budget, choose);
  members.show(s.members ?? [], s.term_ms || 3000);
  const b = current();
  node.show(s, b);
  if (!b) return;
  text(byId('plot-title'), `${name(b.name)}: shares and demand`);
  text(byId('plot-note'), `Mode ${name(b.mode)}, burst ${b.burst_seconds}\u00a0s.${b.shadow ? ' Shadow: decisions are counted, nothing is refused.' : ''}`);
  plot.unit = b.unit;
  plot.draw();
  heat.draw(b, s.node);
  flow.draw(byId('flow'), b.loans ?? [], b.unit);
}

// showVerdict also says in the tab's title how things are.
function showVerdict() {
  const s = state.status;
  if (!s) return;
  const judged = verdict.judge(s, state.watch.exceeded());
  const shown = state.lost ? verdict.outdated(judged) : judged;
  verdict.show(shown);
  document.title = `${{ ok: '\u2713', idle: '?', warn: '!', bad: '\u2717' }[shown.level]} ${name(s.node)} \u00b7 Subak`;
}

function showFrozen(s) {
  const button = byId('freeze');
  text(button, s.frozen ? 'Unfreeze this node' : 'Freeze this node');
  attr(button, 'data-on', String(s.frozen));
  byId('frozen').hidden = !s.frozen;
  text(byId('frozen'), s.frozen ? 'Frozen: this node keeps to its own base, lends nothing and borrows nothing, until someone unfreezes it.' : '');
}

// showLink says how fresh the page is. It runs by its own clock, because what
// it has to tell is that nothing arrives.
function showLink() {
  const pill = byId('link');
  const lost = byId('lost');
  const signedOut = !byId('login').hidden;
  const age = performance.now() - state.heard;
  const stale = state.heard > 0 && age > STALE && !signedOut;
  const level = signedOut ? 'idle' : stale || (state.problem && !state.heard) ? 'bad' : state.heard ? 'ok' : 'idle';
  attr(pill, 'data-level', level);
  text(pill, { idle: signedOut ? 'Signed out' : 'Connecting', ok: 'Live', bad: 'Connection lost' }[level]);
  lost.hidden = level !== 'bad';
  if (state.lost !== (level === 'bad')) {
    state.lost = level === 'bad';
    showVerdict();
  }
  document.body.classList.toggle('stale', level === 'bad');
  if (level === 'bad') {
    const last = state.heard ? `last data ${span(Math.floor(age / 1000) * 1000)} ago` : 'no data yet';
    text(lost, `Connection lost, ${last}. Trying again.${state.problem ? ` (${state.problem})` : ''}`);
  }
}

function confirmFreeze() {
  const frozen = state.status?.frozen;
  const b = current();
  byId('confirm-title').textContent = frozen ? 'Unfreeze this node?' : 'Freeze this node?';
  byId('confirm-text').textContent = frozen
    ? `${name(state.status.node)} will lend and borrow again.`
    : `${name(state.status.node)} gives back all it has borrowed, calls back all it has lent, and keeps to its own base` +
      `${b ? ` (${rate(b.base, b.unit)} of ${name(b.name)})` : ''} until unfrozen. The other nodes go on sharing. Requests above the base are refused here.`;
  byId('confirm-error').textContent = '';
  byId('confirm-yes').textContent = frozen ? 'Unfreeze' : 'Freeze';
  byId('confirm').showModal();
  byId('confirm-no').focus();
}

async function doFreeze() {
  const yes = byId('confirm-yes');
  yes.disabled = true;
  try {
    await post(state.status.frozen ? '/v1/unfreeze' : '/v1/freeze');
    byId('confirm').close();
  } catch (error) {
    byId('confirm-error').textContent = `Not done: ${error.message}`;
  } finally {
    yes.disabled = false;
  }
}

segments(byId('plot-span'), [['60000', '1 min'], ['300000', '5 min']], '300000', (v) => { plot.span = Number(v); plot.draw(); });
segments(byId('plot-zoom'), [['all', 'Fit demand'], ['limit', 'Fit limit']], 'all', (v) => { plot.fit = v === 'limit'; plot.draw(); });
segments(byId('heat-metric'), METRICS, heat.metric, (v) => { heat.metric = v; render(); });
segments(byId('heat-order'), [['roster', 'By roster'], ['high', 'Highest first']], heat.order, (v) => { heat.order = v; render(); });
byId('freeze').addEventListener('click', confirmFreeze);
byId('confirm-no').addEventListener('click', () => byId('confirm').close());
byId('confirm-yes').addEventListener('click', doFreeze);
byId('sign-out').addEventListener('click', () => askToken(''));
byId('login-form').addEventListener('submit', (event) => {
  event.preventDefault();
  token.set(byId('token').value.trim());
  byId('token').value = '';
  start();
});
document.addEventListener('visibilitychange', render);
new ResizeObserver(render).observe(byId('flow'));
setInterval(showLink, 500);
start();
