// The list of budgets: one button each, with the limit against the sums.

import { byId, el, keyed, text, attr } from './dom.js';
import { name, shortRate } from './format.js';

// show draws the list when there is a choice; choose is called with a name.
export function show(budgets, chosen, choose) {
  byId('budget-list').hidden = budgets.length < 2;
  keyed(byId('budgets'), budgets, (b) => b.name,
    (b) => {
      const button = el('button', { type: 'button', class: 'budget' },
        el('span', { class: 'budget-name' }),
        el('span', { class: 'meter', 'aria-hidden': 'true' }, el('span', { class: 'fill' }), el('span', { class: 'mark' })),
        el('span', { class: 'budget-figures muted' }));
      button.addEventListener('click', () => choose(b.name));
      return button;
    },
    (button, b) => {
      // The track is 1.25 limits long, so that an excess has room to show.
      const at = (v) => Math.max(0, Math.min(1, v / (b.limit * 1.25 || 1)));
      attr(button, 'aria-pressed', String(b.name === chosen));
      text(button.querySelector('.budget-name'), name(b.name) + (b.shadow ? ' (shadow)' : ''));
      button.querySelector('.fill').style.width = `${100 * at(b.sum_demand)}%`;
      text(button.querySelector('.budget-figures'), `demand ${shortRate(b.sum_demand, b.unit)} of ${shortRate(b.limit, b.unit)}`);
    });
}
