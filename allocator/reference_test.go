package allocator

import (
	"math"
	"math/big"
)

// This file is a second implementation of the allocation, written from the
// definitions with big integers and no regard for speed. The tests compare the
// product with it, unit for unit.

// refClass is one class of the reference.
type refClass struct {
	reserve, lendMax, borrowMax, protect *big.Int
	preempts                             bool
	rule                                 Rule
	base, floor, limit, asked            []*big.Int // by location
	park                                 *big.Int
	quota                                *big.Int
	insures                              bool // the virtual class: uses class 0's spare as its own
}

func (c *refClass) met() []*big.Int {
	out := make([]*big.Int, len(c.asked))
	for i := range out {
		out[i] = bigMin(c.asked[i], c.base[i])
	}
	return out
}

func (c *refClass) unmet() []*big.Int {
	out := make([]*big.Int, len(c.asked))
	for i, m := range c.met() {
		out[i] = sub(c.asked[i], m)
	}
	return out
}

// reference allocates by the definitions.
type reference struct {
	spec     Spec
	ceilings []Rate
	weights  []*big.Int
	classes  []*refClass
}

// refAllocate returns targets and park.
func refAllocate(s Spec, ceilings, demand []Rate) (target []Rate, parked Rate) {
	r := &reference{spec: s, ceilings: ceilings}
	for _, w := range s.Weights {
		r.weights = append(r.weights, big.NewInt(w))
	}
	r.setUp()
	r.ask(demand)
	if s.Mode == Paper {
		r.paper()
	} else {
		r.poolFirst()
	}
	r.preempt()
	return r.place()
}

func refPart(r *big.Int, share PPM, unlimited *big.Int) *big.Int {
	if share == Unlimited {
		return unlimited
	}
	x := new(big.Int).Mul(r, big.NewInt(share))
	return bigMin(x.Div(x, big.NewInt(Whole)), unlimited)
}

// refBase is the configured base of class k and its park.
func (r *reference) refBase(k int) (base []*big.Int, park *big.Int) {
	var lo, hi []*big.Int
	for i := range r.weights {
		lo, hi = append(lo, bigOf(r.spec.floor(k, i))), append(hi, bigOf(r.spec.limit(k, i)))
	}
	total := bigOf(r.spec.Classes[k].Reservation)
	fits := bigMin(total, bigSum(hi))
	return refClamped(fits, r.weights, lo, hi), sub(total, fits)
}

func (r *reference) setUp() {
	budget := new(big.Int)
	for k, cs := range r.spec.Classes {
		c := &refClass{preempts: cs.Preempts, rule: cs.Rule}
		c.base, c.park = r.refBase(k)
		for i := range r.weights {
			c.limit = append(c.limit, bigOf(r.spec.limit(k, i)))
			c.floor = append(c.floor, bigOf(r.spec.floor(k, i)))
		}
		r.classes = append(r.classes, c)
	}
	if r.ceilings != nil {
		r.scale()
	}
	for _, c := range r.classes {
		c.reserve = plus(bigSum(c.base), c.park)
		budget = plus(budget, c.reserve)
	}
	for k, c := range r.classes {
		cs := r.spec.Classes[k]
		c.lendMax = refPart(c.reserve, cs.Lend, c.reserve)
		c.borrowMax = refPart(c.reserve, cs.Borrow, budget)
		c.protect = refPart(c.reserve, cs.Protect, c.reserve)
	}
}

func (r *reference) scale() {
	for _, c := range r.classes {
		c.park = new(big.Int)
	}
	for i, ceiling := range r.ceilings {
		var col, reserved []*big.Int
		for k, c := range r.classes {
			col, reserved = append(col, c.base[i]), append(reserved, bigOf(r.spec.Classes[k].Reservation))
		}
		if bigSum(col).Sign() == 0 {
			col = reserved
		}
		for k, x := range refRemainder(bigOf(ceiling), col) {
			c := r.classes[k]
			c.base[i] = bigMin(x, c.limit[i])
			c.park = plus(c.park, sub(x, c.base[i]))
			c.floor[i] = bigMin(c.floor[i], c.base[i])
		}
	}
}

// ask brings demand within floors and caps and inserts the insurance.
func (r *reference) ask(demand []Rate) {
	n := len(r.weights)
	for k, c := range r.classes {
		for i := range n {
			c.asked = append(c.asked, bigMin(bigMax(bigOf(demand[k*n+i]), c.floor[i]), c.limit[i]))
		}
	}
	if r.spec.InsurancePPM == 0 {
		return
	}
	zero := new(big.Int)
	top := r.classes[0]
	ins := &refClass{insures: true, rule: top.rule, reserve: zero, lendMax: zero, borrowMax: zero, protect: zero, park: zero}
	for i := range n {
		ins.base, ins.floor = append(ins.base, zero), append(ins.floor, zero)
		ins.limit = append(ins.limit, bigOf(math.MaxInt64))
		want := refPart(bigOf(demand[i]), r.spec.InsurancePPM, bigOf(math.MaxInt64))
		ins.asked = append(ins.asked, bigMin(want, sub(top.limit[i], top.asked[i])))
	}
	r.classes = append([]*refClass{top, ins}, r.classes[1:]...)
}

// selfServe lets class k use spare capacity of its own (the insurance: of class
// 0), and returns what it may still borrow.
func (r *reference) selfServe(k int, spare []*big.Int, topWant *big.Int) (want *big.Int) {
	c := r.classes[k]
	owner, limit := k, c.borrowMax
	if c.insures {
		owner, limit = 0, sub(r.classes[0].borrowMax, topWant)
	}
	own := bigMin(bigSum(c.unmet()), spare[owner])
	spare[owner] = sub(spare[owner], own)
	r.classes[owner].quota = sub(r.classes[owner].quota, own)
	c.quota = plus(c.quota, own)
	return bigMin(sub(bigSum(c.unmet()), own), limit)
}

// spares starts every class with its reservation and returns what it does not
// need at its own cells.
func (r *reference) spares() (spare []*big.Int) {
	for _, c := range r.classes {
		c.quota = c.reserve
		spare = append(spare, sub(c.reserve, bigSum(c.met())))
	}
	return spare
}

func (r *reference) poolFirst() {
	spare := r.spares()
	var topWant *big.Int
	var lendable []*big.Int
	for _, c := range r.classes {
		lendable = append(lendable, c.lendMax)
	}
	for k, c := range r.classes {
		want := r.selfServe(k, spare, topWant)
		if k == 0 {
			topWant = want
		}
		for v := len(r.classes) - 1; v >= 0; v-- {
			if v == k {
				continue
			}
			x := bigMin(want, bigMin(spare[v], lendable[v]))
			want, spare[v], lendable[v] = sub(want, x), sub(spare[v], x), sub(lendable[v], x)
			c.quota, r.classes[v].quota = plus(c.quota, x), sub(r.classes[v].quota, x)
		}
	}
}

func (r *reference) paper() {
	spare := r.spares()
	capped := false
	for k := range r.spec.Classes {
		for i := range r.weights {
			capped = capped || r.spec.limit(k, i) < math.MaxInt64
		}
	}
	var can, stuck, want []*big.Int
	for k := range r.classes {
		want = append(want, r.selfServe(k, spare, append(want, nil)[0]))
	}
	for k, c := range r.classes {
		lend := bigMin(spare[k], c.lendMax)
		can = append(can, lend)
		unplaced := new(big.Int)
		if capped {
			unplaced = bigMin(lend, positive(sub(spare[k], r.room(c))))
		}
		stuck = append(stuck, unplaced)
	}
	total := bigMin(bigSum(can), bigSum(want))
	first := bigMin(total, bigSum(stuck))
	out := refRemainder(first, stuck)
	for k := range can {
		can[k] = sub(can[k], out[k])
	}
	more, in := refRemainder(sub(total, first), can), refRemainder(total, want)
	for k, c := range r.classes {
		c.quota = plus(sub(c.quota, plus(out[k], more[k])), in[k])
	}
}

// room is the headroom the cells of a class can hold.
func (r *reference) room(c *refClass) *big.Int {
	sum := new(big.Int)
	for i := range c.asked {
		room := sub(c.limit[i], c.asked[i])
		if r.spec.Headroom == HeadroomOwnerKeeps {
			room = bigMin(room, positive(sub(c.base[i], c.asked[i])))
		}
		if c.base[i].Sign() > 0 || r.spec.Headroom == HeadroomByDemand && c.asked[i].Sign() > 0 {
			sum = plus(sum, room)
		}
	}
	return sum
}

func (r *reference) preempt() {
	for k, c := range r.classes {
		if !c.preempts {
			continue
		}
		room := sub(plus(c.reserve, c.borrowMax), c.quota)
		if k == 0 && r.spec.InsurancePPM > 0 {
			room = positive(sub(room, r.classes[1].quota))
		}
		need := bigMin(positive(sub(bigSum(c.asked), c.quota)), room)
		for v := len(r.classes) - 1; v > k; v-- {
			w := r.classes[v]
			x := bigMin(need, positive(sub(w.quota, bigMax(w.protect, bigSum(w.floor)))))
			need, c.quota, w.quota = sub(need, x), plus(c.quota, x), sub(w.quota, x)
		}
	}
}

// share splits total over v by the class's level-1 rule.
func (r *reference) share(c *refClass, total *big.Int, v []*big.Int) []*big.Int {
	if c.rule == MaxMin {
		out, _ := refFill(total, v, r.weights)
		return out
	}
	return refRemainder(total, v)
}

// cells returns the cells of a class before headroom, and the spare quota.
func (r *reference) cells(c *refClass) (out []*big.Int, spare *big.Int) {
	out = make([]*big.Int, len(c.asked))
	switch {
	case c.quota.Cmp(bigSum(c.asked)) >= 0:
		copy(out, c.asked)
		return out, sub(c.quota, bigSum(c.asked))
	case c.quota.Cmp(bigSum(c.met())) >= 0:
		extra := r.share(c, sub(c.quota, bigSum(c.met())), c.unmet())
		for i, m := range c.met() {
			out[i] = plus(m, extra[i])
		}
	default:
		need := make([]*big.Int, len(c.asked))
		for i, m := range c.met() {
			need[i] = sub(m, c.floor[i])
		}
		part := r.share(c, sub(c.quota, bigSum(c.floor)), need)
		for i := range out {
			out[i] = plus(c.floor[i], part[i])
		}
	}
	return out, new(big.Int)
}

func (r *reference) place() (target []Rate, parked Rate) {
	var insurance []*big.Int
	for _, c := range r.classes {
		if c.insures {
			insurance, _ = r.cells(c)
		}
	}
	for k, c := range r.classes {
		if c.insures {
			continue
		}
		out, spare := r.cells(c)
		for i := range insurance {
			if k == 0 {
				out[i] = plus(out[i], insurance[i])
			}
		}
		left := r.headroom(c, out, spare)
		parked += Rate(left.Int64())
		for _, x := range out {
			target = append(target, Rate(x.Int64()))
		}
	}
	return target, parked
}

// headroom adds spare to out and returns what does not fit.
func (r *reference) headroom(c *refClass, out []*big.Int, spare *big.Int) *big.Int {
	weights := [][]*big.Int{c.base}
	owner := make([]*big.Int, len(out))
	for i := range out {
		owner[i] = positive(sub(c.base[i], c.asked[i]))
	}
	switch r.spec.Headroom {
	case HeadroomOwnerKeeps:
		weights = [][]*big.Int{owner}
	case HeadroomByDemand:
		weights = [][]*big.Int{c.asked, c.base}
	}
	for _, w := range weights {
		room := make([]*big.Int, len(out))
		for i := range out {
			room[i] = sub(c.limit[i], out[i])
			if c.limit[i].IsInt64() && c.limit[i].Int64() == math.MaxInt64 {
				room[i] = spare // no cap
			}
			if r.spec.Headroom == HeadroomOwnerKeeps {
				room[i] = bigMin(room[i], owner[i])
			}
		}
		var add []*big.Int
		add, spare = refFill(spare, room, w)
		for i := range out {
			out[i] = plus(out[i], add[i])
		}
	}
	return spare
}
