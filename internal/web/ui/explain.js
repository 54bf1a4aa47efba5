// Why a cell got what it got: the node's words, and its figures as bars.

import { byId, el } from './dom.js';
import { name, rate } from './format.js';
import { get } from './stream.js';

const FIGURES = [
  ['demand', 'Demand'], ['base', 'Base, its own part'], ['kept', 'Kept of its base'], ['level1', 'From the same class elsewhere'],
  ['borrowed', 'Borrowed from other classes'], ['headroom', 'Spare capacity added'], ['lent', 'Lent to others'], ['target', 'Share'],
];

// figures lists the explanation's numbers that say something: zeros in the
// middle are left out.
function figures(e, unit) {
  const shown = FIGURES.filter(([key]) => ['demand', 'base', 'target'].includes(key) || e[key] > 0);
  const max = Math.max(1e-9, ...shown.map(([key]) => e[key]));
  return el('table', { class: 'figures' }, el('tbody', {}, ...shown.map(([key, label]) => {
    const bar = el('span', { class: `bar bar-${key}` });
    bar.style.width = `${(100 * e[key]) / max}%`;
    return el('tr', {}, el('th', { scope: 'row' }, label), el('td', { class: 'num' }, rate(e[key], unit)), el('td', { class: 'bars', 'aria-hidden': 'true' }, bar));
  })));
}

// Explain fills the panel for one cell at a time.
export class Explain {
  constructor(closed) {
    this.turn = 0; // counts requests; a late answer to an older one is dropped
    this.closed = closed;
    byId('explain-close').addEventListener('click', () => this.close());
    document.addEventListener('keydown', (e) => { if (e.key === 'Escape' && !byId('confirm').open) this.close(); });
    this.clear();
  }

  async open(budget, cls, node, unit) {
    const turn = ++this.turn;
    const body = byId('explain-body');
    byId('explain-title').textContent = `Why ${name(node)} / ${name(cls)}?`;
    byId('explain-close').hidden = false;
    try {
      const e = await get('/v1/explain', { budget, class: cls, node });
      if (turn !== this.turn) return;
      const again = el('button', { type: 'button', class: 'quiet' }, 'Ask again');
      again.addEventListener('click', () => this.open(budget, cls, node, unit));
      const enforced = e.share >= 0 ? el('p', {}, `Enforced here right now: ${rate(e.share, unit)}.`) : null;
      body.replaceChildren(
        el('ul', { class: 'words' }, ...(e.words ?? []).map((w) => el('li', {}, w))),
        figures(e, unit), ...(enforced ? [enforced] : []),
        el('p', { class: 'muted row' }, `As of ${new Date().toLocaleTimeString('en-GB')}`, again));
    } catch (error) {
      if (turn === this.turn) body.replaceChildren(el('p', { class: 'error' }, `No explanation: ${error.message}`));
    }
    // On a narrow screen the words are below the table, maybe out of sight.
    if (byId('explain').getBoundingClientRect().top > window.innerHeight - 80) byId('explain').scrollIntoView({ block: 'nearest' });
  }

  close() {
    this.turn++;
    this.clear();
    this.closed();
  }

  clear() {
    byId('explain-title').textContent = 'Why this figure?';
    byId('explain-close').hidden = true;
    byId('explain-body').replaceChildren(el('p', { class: 'muted' }, 'Choose a cell to read why it got what it got.'));
  }
}
