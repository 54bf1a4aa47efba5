// The members: who is there, how old their data is, whether they see the same.

import { byId, el, keyed, setIcon, text, attr } from './dom.js';
import { name, span } from './format.js';

// state is a member's level and the words for it.
export function state(m) {
  if (m.refused) return { level: 'bad', words: `refused: ${m.refused}` };
  if (!m.listed) return { level: 'warn', words: 'not in the roster' };
  if (m.live) return { level: m.gossip && m.gossip !== 'alive' && !m.self ? 'warn' : 'ok', words: m.gossip === 'alive' || !m.gossip || m.self ? 'live' : `live, gossip says ${m.gossip}` };
  if (m.gossip === 'alive') return { level: 'warn', words: 'reachable, but no fresh data both ways' };
  return { level: m.gossip === 'left' ? 'idle' : 'bad', words: m.gossip === 'left' ? 'left' : m.gossip || 'unknown' };
}

// Those that need a look come first, then this node, then by name.
const RANK = { bad: 0, warn: 1, idle: 2, ok: 3 };
function order(a, b) {
  return RANK[trouble(a)] - RANK[trouble(b)] || Number(b.self) - Number(a.self) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

function trouble(m) {
  const { level } = state(m);
  return level === 'ok' && !m.agrees && !m.self ? 'warn' : level;
}

function view(m) {
  if (m.self) return { level: 'ok', words: 'this view' };
  if (!m.digest) return { level: 'idle', words: 'unknown' };
  if (!m.live) return { level: 'idle', words: 'not fresh' };
  return m.agrees ? { level: 'ok', words: 'agrees' } : { level: 'warn', words: 'differs' };
}

// show draws the table. staleAfter is the age in ms from which data counts as old.
export function show(members, staleAfter) {
  const listed = members.filter((m) => m.listed);
  text(byId('members-sum'), `${listed.filter((m) => m.live).length} of ${listed.length} live`);
  keyed(byId('members').tBodies[0], [...members].sort(order), (m) => m.name,
    () => el('tr', {}, el('th', { scope: 'row' }), el('td', { class: 'state' }, el('div', { class: 'sign' }, el('span'))), el('td', { class: 'num', 'data-label': 'age' }),
      el('td', { class: 'num', 'data-label': 'RTT' }), el('td', { class: 'view' }, el('div', { class: 'sign' }, el('span'), el('code'))),
      el('td', { class: 'num', 'data-label': 'weight' }), el('td', { class: 'address' })),
    (tr, m) => update(tr, m, staleAfter));
}

function update(tr, m, staleAfter) {
  const [who, how, age, rtt, seen, weight, address] = tr.children;
  text(who, name(m.name));
  attr(who, 'data-note', m.self ? 'this node' : null);
  attr(tr, 'title', `incarnation ${m.incarnation}, row ${m.sequence}`);
  const s = state(m);
  setIcon(how.firstElementChild, s.level);
  text(how.firstElementChild.lastElementChild, s.words);
  text(age, m.age_ms < 0 ? 'none' : span(m.age_ms));
  attr(age, 'data-level', !m.self && (m.age_ms < 0 || m.age_ms > staleAfter) ? 'warn' : null);
  text(rtt, m.self ? '\u2013' : m.rtt_ms < 0 ? '?' : m.rtt_ms < 10 ? `${m.rtt_ms.toFixed(1)}\u00a0ms` : span(m.rtt_ms));
  const v = view(m);
  const sign = seen.firstElementChild;
  setIcon(sign, v.level);
  text(sign.children[1], v.words);
  text(sign.lastElementChild, m.digest ? name(m.digest).slice(0, 8) : '');
  text(weight, String(m.weight));
  text(address, m.address ? name(m.address) : '');
  attr(address, 'title', m.address ? name(m.address) : null);
}
