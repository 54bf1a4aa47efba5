package allocator

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Mode says how capacity moves between classes. Source: allocation.md "One cycle".
type Mode uint8

const (
	// PoolFirst is the default. Every cell keeps what it needs of its own base;
	// the unused base of all classes is one pool, taken by class priority: a
	// class takes its own unused base first, then that of the lowest class
	// upward. A flooded location of a low class cannot soak up capacity that a
	// higher class needs elsewhere.
	PoolFirst Mode = iota
	// Paper nets spare and deficit inside each class first, and lends only what
	// is then left, in proportion to what each class can lend and wants.
	Paper
)

// Rule says how a class shares scarce capacity over its locations (level 1).
type Rule uint8

const (
	// Proportional shares in proportion to each location's deficit. A location
	// that inflates its report gains by it: use it for classes whose demand
	// nobody can fake.
	Proportional Rule = iota
	// MaxMin fills the deficits like water, weighted by the location weights.
	// Inflating a report gains nothing (law 9).
	MaxMin
)

// Headroom says where a class's capacity goes that nobody demands.
type Headroom uint8

const (
	// HeadroomByBase adds it in proportion to base, within caps: every location
	// has room for a jump. The default.
	HeadroomByBase Headroom = iota
	// HeadroomOwnerKeeps leaves it where it is unused, as the paper does. Exact
	// betweenness (law 2), but a busy cell has no headroom at all.
	HeadroomOwnerKeeps
	// HeadroomByDemand adds it in proportion to demand, within caps: room where
	// the traffic is, none where it may appear next.
	HeadroomByDemand
)

// PPM is a share in parts per million: 1,000,000 is the whole.
type PPM = int64

const (
	// Whole is 100 % as a PPM.
	Whole PPM = 1_000_000
	// Unlimited as a Lend or Borrow share means no limit.
	Unlimited PPM = -1

	// MaxClasses bounds the classes of one budget.
	MaxClasses = 64
	// maxNodes keeps cell indices within 32 bits, with the class index on top.
	maxNodes = 1 << 24
)

// ClassSpec describes one service class. The zero value neither lends nor
// borrows and is not protected from preemption.
type ClassSpec struct {
	Name string
	// Reservation is the class's part of the budget, >= 0. All of them add up to
	// the budget exactly.
	Reservation Rate
	// Lend is the most the class lends to others, as a share of its reservation:
	// 0 to Whole, or Unlimited. 0 means that it lends nothing.
	Lend PPM
	// Borrow is the most the class gets above its reservation, as a share of its
	// reservation: 0 or more (above Whole is fine), or Unlimited. What it takes
	// by preemption and by insurance counts too, so 0 means never above its
	// reservation (lesson O7).
	Borrow PPM
	// Protect is the share of the reservation that preempting higher classes
	// must leave, 0 to Whole. Floors are left in any case.
	Protect PPM
	// Preempts lets the class take from lower ones, while it has unmet demand,
	// what they hold above their protection. This gives up the promise that a
	// class keeps what it needs of its own reservation.
	Preempts bool
	// Rule is the level-1 rule of the class.
	Rule Rule
}

// Spec is the whole configuration of one budget's allocation.
type Spec struct {
	Budget  Rate        // B > 0, micro-units per second
	Classes []ClassSpec // in priority order, highest first; 1 to MaxClasses
	Weights []int64     // one for each location in canonical order, > 0, sum < 2^63
	// Floors and Caps bound cells, indexed [class][node]. nil means none, and so
	// does a nil row. A floor is >= 0; a negative cap means no cap.
	Floors, Caps [][]Rate
	Mode         Mode
	Headroom     Headroom
	// InsurancePPM is extra room for class 0, as a share of each location's
	// class 0 demand (0 to Whole), served after all class 0 demand and before
	// the deficits of lower classes. It idles capacity on purpose.
	InsurancePPM PPM
}

// Validate reports every fault of the specification, joined.
func (s *Spec) Validate() error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if s.Budget <= 0 {
		add("budget %d must be above 0", s.Budget)
	}
	if k := len(s.Classes); k < 1 || k > MaxClasses {
		add("%d classes: need 1 to %d", k, MaxClasses)
	}
	var sum, carry uint64
	for k := range s.Classes {
		c := &s.Classes[k]
		faults = append(faults, c.validate(k))
		if c.Reservation > 0 {
			var o uint64
			sum, o = bits.Add64(sum, uint64(c.Reservation), 0)
			carry += o
		}
	}
	if carry != 0 || sum != uint64(s.Budget) {
		add("reservations add up to %d, not to the budget %d", sum, s.Budget)
	}
	if s.Mode > Paper {
		add("unknown mode %d", s.Mode)
	}
	if s.Headroom > HeadroomByDemand {
		add("unknown headroom rule %d", s.Headroom)
	}
	if s.InsurancePPM < 0 || s.InsurancePPM > Whole {
		add("insurance %d ppm: need 0 to %d", s.InsurancePPM, Whole)
	}
	faults = append(faults, s.validateWeights(), s.validateRules(), s.validateCells())
	return errors.Join(faults...)
}

func (c *ClassSpec) validate(k int) error {
	var faults []error
	add := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("class %d (%s): %w", k, c.Name, fmt.Errorf(format, args...)))
	}
	if c.Reservation < 0 {
		add("reservation %d is negative", c.Reservation)
	}
	if c.Lend != Unlimited && (c.Lend < 0 || c.Lend > Whole) {
		add("lend %d ppm: need 0 to %d, or %d for no limit", c.Lend, Whole, Unlimited)
	}
	if c.Borrow < Unlimited {
		add("borrow %d ppm: need 0 or more, or %d for no limit", c.Borrow, Unlimited)
	}
	if c.Protect < 0 || c.Protect > Whole {
		add("protect %d ppm: need 0 to %d", c.Protect, Whole)
	}
	if c.Rule > MaxMin {
		add("unknown level-1 rule %d", c.Rule)
	}
	return errors.Join(faults...)
}

func (s *Spec) validateWeights() error {
	if n := len(s.Weights); n < 1 || n > maxNodes {
		return fmt.Errorf("%d locations: need 1 to %d", n, maxNodes)
	}
	var faults []error
	var sum int64
	for i, w := range s.Weights {
		switch {
		case w <= 0:
			faults = append(faults, fmt.Errorf("location %d: weight %d must be above 0", i, w))
		case w > math.MaxInt64-sum:
			return errors.Join(append(faults, errors.New("weights add up to 2^63 or more"))...)
		default:
			sum += w
		}
	}
	return errors.Join(faults...)
}

// validateRules refuses max-min sharing under the proportional class level as
// soon as two classes can compete for a third one's spare: an inflated report
// would then win capacity for the classmates of the inflater. The insurance
// counts as a class. Source: allocation.md "One cycle".
func (s *Spec) validateRules() error {
	k := len(s.Classes)
	if s.InsurancePPM > 0 {
		k++
	}
	if s.Mode != Paper || k < 3 {
		return nil
	}
	var faults []error
	for k := range s.Classes {
		if c := &s.Classes[k]; c.Rule == MaxMin {
			faults = append(faults, fmt.Errorf("class %d (%s): max-min sharing with mode paper and three or more classes "+
				"(insurance counts as one) lets classmates gain from an inflated report: use mode pool-first or proportional sharing", k, c.Name))
		}
	}
	return errors.Join(faults...)
}

func (s *Spec) validateCells() error {
	if err := errors.Join(s.validateShape("floors", s.Floors), s.validateShape("caps", s.Caps)); err != nil {
		return err
	}
	var faults []error
	for k := range s.Classes {
		var sum uint64
		over := false
		for i := range s.Weights {
			lo, hi := s.floor(k, i), s.limit(k, i)
			if lo < 0 {
				faults = append(faults, fmt.Errorf("class %d, location %d: floor %d is negative", k, i, lo))
				continue
			}
			if lo > hi {
				faults = append(faults, fmt.Errorf("class %d, location %d: floor %d is above the cap %d", k, i, lo, hi))
			}
			sum += uint64(lo)
			if sum > math.MaxInt64 {
				over, sum = true, 0
			}
		}
		if over || sum > uint64(max(0, s.Classes[k].Reservation)) {
			faults = append(faults, fmt.Errorf("class %d (%s): floors add up to more than the reservation %d",
				k, s.Classes[k].Name, s.Classes[k].Reservation))
		}
	}
	return errors.Join(faults...)
}

func (s *Spec) validateShape(what string, cells [][]Rate) error {
	if cells == nil {
		return nil
	}
	if len(cells) != len(s.Classes) {
		return fmt.Errorf("%s for %d classes, there are %d", what, len(cells), len(s.Classes))
	}
	for k, row := range cells {
		if row != nil && len(row) != len(s.Weights) {
			return fmt.Errorf("class %d: %s for %d locations, there are %d", k, what, len(row), len(s.Weights))
		}
	}
	return nil
}

// floor is the configured floor of a cell, 0 if none.
func (s *Spec) floor(k, i int) Rate {
	if s.Floors == nil || s.Floors[k] == nil {
		return 0
	}
	return s.Floors[k][i]
}

// limit is the configured cap of a cell, the largest rate if none.
func (s *Spec) limit(k, i int) Rate {
	if s.Caps == nil || s.Caps[k] == nil || s.Caps[k][i] < 0 {
		return math.MaxInt64
	}
	return s.Caps[k][i]
}

// partOf is floor(r * share / Whole), at most most.
func partOf(r Rate, share PPM, most Rate) Rate {
	if share == Unlimited {
		return most
	}
	hi, lo := bits.Mul64(uint64(r), uint64(share))
	if hi >= uint64(Whole) {
		return most
	}
	q, _ := bits.Div64(hi, lo, uint64(Whole))
	return Rate(min(q, uint64(most)))
}
