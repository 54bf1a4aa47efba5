// This node: what it enforces for the chosen budget, and how it is doing.

import { byId, el, keyed, text, attr } from './dom.js';
import { grouped, name, rate, short, shortRate, span } from './format.js';

// show draws the panel for budget b (which may be missing) of the status.
export function show(status, b) {
  showShare(b);
  showClasses(b);
  const epoch = status.epoch ?? {};
  const facts = [
    ['Config epoch', status.provisional ? 'not known yet'
      : `${epoch.version ?? '?'} (${epoch.active ? 'active' : epoch.acked ? 'acknowledged, not active' : 'not acknowledged'})`],
    ['Change', status.change ? name(status.change, 300) : 'none under way'],
    ['Config file', differs(status.file_differs ?? [])],
    ['Peers', { joined: 'joined', alone: 'runs alone by configuration', 'never-joined': 'never joined', 'lost-peers': 'lost all peers' }[status.join] ?? name(status.join)],
    ['Base proved', status.proved ? 'yes' : 'not yet'],
    ['Quarantine', status.quarantine_seconds > 0 ? `${span(status.quarantine_seconds * 1000)} left` : 'over'],
    ['Cycle / loan term', `${span(status.tick_ms)} / ${span(status.term_ms)}`],
    ['Uptime', span(status.uptime_seconds * 1000)],
    ['Messages dropped', dropped(status.dropped ?? {})],
  ];
  keyed(byId('node-facts'), facts, (f) => f[0], (f) => el('div', {}, el('dt', {}, f[0]), el('dd')), (div, f) => text(div.lastElementChild, f[1]));
}

// differs says what the file of this node would change, were it applied.
function differs(words) {
  if (!words.length) return 'says what is in force';
  return `differs, and counts only once applied: ${name(words.slice(0, 3).join('; '), 300)}${words.length > 3 ? `; and ${words.length - 3} more` : ''}`;
}

function dropped(reasons) {
  const some = Object.entries(reasons).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  if (!some.length) return 'none';
  return some.slice(0, 4).map(([why, n]) => `${name(why)} ${grouped(n)}`).join(', ') + (some.length > 4 ? ', \u2026' : '');
}

// showShare says in one line how the share comes about.
function showShare(b) {
  const host = byId('node-share');
  if (!host.firstChild) host.append(el('p', { class: 'big' }, el('strong'), el('span', { class: 'muted' })), el('p', { class: 'muted sumline' }));
  const [big, sums] = host.children;
  text(big.firstElementChild, b ? rate(b.share, b.unit) : 'no budget');
  text(big.lastElementChild, b ? ` enforced of ${name(b.name)}${b.shadow ? ' (shadow: nothing is refused)' : ''}` : '');
  text(sums, b ? `${short(b.ceiling)} base in force \u2212 ${short(b.lent)} lent + ${short(b.borrowed)} borrowed` +
    (b.ceiling < b.base * 0.999 ? `; configured base ${short(b.base)}` : '') : '');
}

const COLUMNS = [
  ['Class', (c) => name(c.name)], ['Demand', (c) => short(c.demand)], ['Share', (c) => short(c.share)],
  ['Refused', (c, unit) => shortRate(c.refused_rate, unit)], ['In total', (c) => short(c.refused_total)],
];

function showClasses(b) {
  const head = byId('node-classes-head');
  if (!head.firstChild) head.append(el('tr', {}, ...COLUMNS.map(([label], i) => el('th', { scope: 'col', class: i ? 'num' : '' }, label))));
  keyed(byId('node-classes'), b?.classes ?? [], (c) => c.name,
    () => el('tr', {}, el('th', { scope: 'row' }), ...COLUMNS.slice(1).map(() => el('td', { class: 'num' }))),
    (tr, c) => {
      COLUMNS.forEach(([, show], i) => text(tr.children[i], show(c, b.unit)));
      attr(tr.children[3], 'data-level', c.refused_rate > 0 ? 'hot' : null);
      attr(tr, 'title', `offered ${grouped(c.offered_total)}, admitted ${grouped(c.admitted_total)} (${grouped(c.borrowed_total)} on another class's unused tokens), refused ${grouped(c.refused_total)}`);
    });
}
