// The verdict: is the budget kept, do the views agree, who is missing, is this
// node ready. judge is pure; show draws it.

import { byId, el, keyed, setIcon, text, attr } from './dom.js';
import { names, rate, span } from './format.js';

// Shares are read from rows of different age, so the sum seen may be over the
// limit for a moment while the sum enforced is not. Only a lasting excess counts.
const OVER_SAMPLES = 4;
const OVER_FACTOR = 1.0005;

// Watch counts, per budget, for how many samples in a row it looked exceeded.
export class Watch {
  constructor() {
    this.over = new Map();
  }

  update(budgets) {
    const next = new Map();
    for (const b of budgets) {
      if (b.sum_share > b.limit * OVER_FACTOR) next.set(b.name, (this.over.get(b.name) ?? 0) + 1);
    }
    this.over = next;
  }

  exceeded() {
    return [...this.over].filter(([, n]) => n >= OVER_SAMPLES).map(([name]) => name);
  }
}

function judgeBudgets(status, exceeded) {
  const budgets = status.budgets ?? [];
  if (!budgets.length) return { key: 'budget', level: 'idle', title: 'No budget', detail: 'nothing is configured' };
  if (exceeded.length) {
    const worst = budgets.find((b) => b.name === exceeded[0]);
    const detail = worst ? `shares seen ${rate(worst.sum_share, worst.unit)}, limit ${rate(worst.limit, worst.unit)}` : '';
    return { key: 'budget', level: 'bad', title: `Over budget: ${names(exceeded)}`, detail };
  }
  if (budgets.length === 1) {
    const [b] = budgets;
    return { key: 'budget', level: 'ok', title: 'Budget kept', detail: `shares ${rate(b.sum_share, b.unit)} of ${rate(b.limit, b.unit)}` };
  }
  return { key: 'budget', level: 'ok', title: `All ${budgets.length} budgets kept`, detail: 'shares add up to no more than each limit' };
}

function judgeViews(status) {
  const live = (status.members ?? []).filter((m) => m.live);
  const others = live.filter((m) => !m.self && !m.agrees).map((m) => m.name);
  if (!status.digests) return { key: 'views', level: 'idle', title: 'Views unknown', detail: 'no digest seen yet' };
  if (status.digests === 1) {
    return { key: 'views', level: 'ok', title: live.length > 1 ? 'Views agree' : 'One view', detail: live.length > 1 ? `${live.length} nodes, one view` : 'no other node to compare with' };
  }
  return { key: 'views', level: 'warn', title: `${status.digests} different views`, detail: others.length ? `differ from this node: ${names(others)}` : 'other nodes disagree' };
}

function judgeMembers(status) {
  const listed = (status.members ?? []).filter((m) => m.listed);
  const missing = listed.filter((m) => !m.live).map((m) => m.name);
  const title = `${listed.length - missing.length} of ${listed.length} live`;
  if (!missing.length) return { key: 'members', level: listed.length ? 'ok' : 'idle', title, detail: 'fresh data both ways' };
  const self = status.members.find((m) => m.self);
  const alone = self && !self.live;
  return { key: 'members', level: alone || missing.length * 2 >= listed.length ? 'bad' : 'warn', title, detail: `not live: ${names(missing)}` };
}

function judgeNode(status) {
  const strange = status.provisional ? ' and does not know what is in force' : status.member === false ? ' and no member' : '';
  const title = (status.ready ? 'This node is ready' : 'This node is not ready') + strange;
  let detail = status.reason || (status.ready ? 'its share is in force' : 'no reason given');
  if (status.quarantine_seconds > 0) detail += ` (quarantine: ${span(status.quarantine_seconds * 1000)} left)`;
  const doubtful = status.quarantine_seconds > 0 || status.join === 'lost-peers' || status.join === 'never-joined';
  return { key: 'node', level: !status.ready ? 'bad' : doubtful ? 'warn' : 'ok', title, detail };
}

// overload says by how much demand is over the limit where it is: the budget is
// then kept by refusing.
function overload(status) {
  const over = (status.budgets ?? []).filter((b) => b.limit > 0 && b.sum_demand > b.limit * 1.01);
  if (!over.length) return ', nothing is short';
  if (status.budgets.length > 1) return `, ${over.length} of them short: demand is over the limit`;
  return ` under overload: demand is ${Math.round((100 * over[0].sum_demand) / over[0].limit)}\u00a0% of the limit`;
}

const RANK = { ok: 0, idle: 1, warn: 2, bad: 3 };

// judge returns the tiles, the line that sums them up, and what to say aloud:
// the line without figures, which change all the time.
export function judge(status, exceeded) {
  const tiles = [judgeBudgets(status, exceeded), judgeViews(status), judgeMembers(status), judgeNode(status)];
  const level = tiles.reduce((worst, t) => (RANK[t.level] > RANK[worst] ? t.level : worst), 'ok');
  // The budget first, whatever else is wrong; then what needs a look.
  const wrong = tiles.slice(1).filter((t) => t.level === 'warn' || t.level === 'bad').map((t) => t.title.replace(/^This node is/, 'this node is'));
  let line = tiles[0].title;
  if (wrong.length) line += `, but ${wrong.join(', ')}`;
  const frozen = status.frozen ? '; this node is frozen' : '';
  const say = line + frozen;
  if (level === 'ok') line += overload(status);
  return { level: frozen && level === 'ok' ? 'warn' : level, line: line + frozen, say, tiles };
}

// outdated is a judgement that nothing confirms any more.
export function outdated(judged) {
  return { ...judged, level: 'idle', line: `Last known: ${judged.line}`, say: 'Connection lost' };
}

// show draws a judgement.
export function show({ level, line, say, tiles }) {
  text(byId('say'), say);
  const node = byId('verdict-line');
  if (!node.lastElementChild?.matches('span')) node.replaceChildren(el('span'));
  setIcon(node, level);
  attr(node, 'data-level', level);
  text(node.lastElementChild, line);
  keyed(byId('tiles'), tiles, (t) => t.key,
    (t) => el('li', { class: 'tile', 'data-key': t.key }, el('div', {}, el('strong'), el('span', { class: 'muted' }))),
    (li, t) => {
      setIcon(li, t.level);
      attr(li, 'data-level', t.level);
      text(li.querySelector('strong'), t.title);
      text(li.querySelector('.muted'), t.detail);
      attr(li, 'title', t.detail);
    });
}
