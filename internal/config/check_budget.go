package config

import (
	"fmt"
	"time"

	"subak/allocator"
)

const (
	maxBudgets   = 1000
	minClasses   = 2
	maxClasses   = 64
	minBurst     = 10 * time.Millisecond
	maxBurst     = time.Hour
	maxInsurance = Whole
	maxTenants   = 16_000_000
)

func (k *checker) budgets() {
	budgets := k.c.Budgets
	switch {
	case len(budgets) == 0:
		k.Fault("budgets", "lists no budget", "write at least one with name, limit and classes; see subak config example")
	case len(budgets) > maxBudgets:
		k.Fault("budgets", fmt.Sprintf("lists more than %d budgets", maxBudgets), "list fewer")
		return
	}
	k.unique("budgets", len(budgets), func(i int) string { return budgets[i].Name })
	for i := range budgets {
		k.budget(fmt.Sprintf("budgets[%d]", i), &budgets[i])
	}
}

func (k *checker) budget(path string, b *Budget) {
	limit := path + ".limit"
	switch {
	case !k.Given(limit):
		k.Fault(limit, "is missing", "write what all nodes together may admit, such as 20000/s or 5MB/s")
	case b.Limit.Rate == 0:
		k.Fault(limit, "is 0: nothing would ever be admitted", "write a rate above 0")
	}
	if b.Burst < minBurst || b.Burst > maxBurst {
		k.Fault(path+".burst", fmt.Sprintf("%v is not between %v and %v", b.Burst, minBurst, maxBurst), "write 1s")
	}
	if b.Insurance < 0 || b.Insurance > maxInsurance {
		k.Fault(path+".insurance", fmt.Sprintf("%v is not between 0%% and %v", b.Insurance, maxInsurance), "write 0% for none")
	}
	k.classes(path, b)
	k.cells(path, b)
}

func (k *checker) classes(path string, b *Budget) {
	list := path + ".classes"
	if n := len(b.Classes); n < minClasses || n > maxClasses {
		k.Fault(list, fmt.Sprintf("lists %d classes where a budget needs %d to %d", n, minClasses, maxClasses), "list them as {name: ..., reserve: ...}, highest priority first")
		return
	}
	k.unique(list, len(b.Classes), func(i int) string { return b.Classes[i].Name })
	for i := range b.Classes {
		k.class(fmt.Sprintf("%s[%d]", list, i), b, i)
	}
	k.reservations(path, b)
}

// class checks one class and settles its level1 default, which depends on its
// place and on the budget's mode.
func (k *checker) class(path string, b *Budget, i int) {
	class := &b.Classes[i]
	percent := func(field string, p Percent, unlimited bool) {
		if p > Whole && !unlimited || p < 0 && !unlimited {
			k.Fault(path+"."+field, fmt.Sprintf("%v is not between 0%% and 100%%", p), "write 100% for all of it")
		}
	}
	percent("lend", class.Lend, false)
	percent("borrow", class.Borrow, true)
	percent("protect", class.Protect, false)
	k.tenants(path, b, class)
	mixed := b.maxMinUnfit()
	switch {
	case class.Level1 == "" && (i == 0 || mixed):
		class.Level1 = Proportional
	case class.Level1 == "":
		class.Level1 = MaxMin
	case class.Level1 == MaxMin && mixed:
		k.Fault(path+".level1", "maxmin with mode paper and three classes or more (insurance counts as one) lets nodes gain by overstating their demand", "write proportional, or mode: pool-first")
	}
}

func (k *checker) tenants(path string, b *Budget, class *Class) {
	t := class.Tenants
	if t == nil {
		return
	}
	const mend = "write a part of the class such as 10%, or a rate at each node such as 50/s"
	each := path + ".tenants.each"
	switch r := t.Each; {
	case !k.Given(each):
		k.Fault(each, "is missing", mend)
	case r.IsRate && r.Amount.Rate == 0 || !r.IsRate && r.Percent == 0:
		k.Fault(each, "is 0: no tenant would get anything", mend)
	case !r.IsRate && r.Percent > Whole:
		k.Fault(each, fmt.Sprintf("%v is above 100%%", r.Percent), mend)
	case !r.IsRate && class.Reserve.Percent == 0 && class.Reserve.Amount.Rate == 0 && k.Given(path+".reserve") && !k.Bad(path+".reserve"):
		k.Fault(each, "is a part of a class that reserves nothing: it could shrink to nothing", "write a rate at each node, such as 50/s")
	case r.IsRate && b.Limit.Unit != "" && r.Amount.Unit != b.Limit.Unit:
		k.Fault(each, fmt.Sprintf("%v is not in the limit's unit, %s", r.Amount, b.Limit.Unit), "write it in the same unit, or as a percentage")
	}
	if t.Burst != 0 && t.Burst < minBurst || t.Burst > maxBurst {
		k.Fault(path+".tenants.burst", fmt.Sprintf("%v is not between %v and %v", t.Burst, minBurst, maxBurst), "remove it, to take the budget's")
	}
	if t.Keys < 1 || t.Keys > maxTenants {
		k.Fault(path+".tenants.keys", fmt.Sprintf("%d is not between 1 and 16,000,000", t.Keys), "write 100000")
	}
}

// maxMinUnfit reports whether max-min inside a class would reward overstatement:
// under a proportional class level, as soon as two classes compete for a third
// one's spare. Source: allocation.md "One cycle".
func (b *Budget) maxMinUnfit() bool {
	classes := len(b.Classes)
	if b.Insurance > 0 {
		classes++
	}
	return b.Mode == Paper && classes >= 3
}

// reservations checks that the classes share out the limit exactly.
func (k *checker) reservations(path string, b *Budget) {
	var percents Percent
	var rates allocator.Rate
	limited, readable := !k.Bad(path+".limit"), true
	for i := range b.Classes {
		at := fmt.Sprintf("%s.classes[%d].reserve", path, i)
		r := &b.Classes[i].Reserve
		first := &b.Classes[0].Reserve
		switch {
		case !k.Given(at):
			k.Fault(at, "is missing", "write its part of the limit, such as 60% or 12000/s; 0% to live on what others leave")
		case r.IsRate != first.IsRate && !k.Bad(at):
			k.Fault(at, "mixes a rate with percentages", "write all reservations of a budget as percentages, or all as rates")
		case r.IsRate && r.Amount.Unit != b.Limit.Unit && limited:
			k.Fault(at, fmt.Sprintf("%v is not in the limit's unit, %s", r.Amount, b.Limit.Unit), "write it in the same unit, or as a percentage")
		}
		readable = readable && !k.Bad(at)
		percents += r.Percent
		rates = min(rates+r.Amount.Rate, MaxRate+1) // no limit is above MaxRate
	}
	switch {
	case !readable:
	case !b.Classes[0].Reserve.IsRate && percents != Whole:
		k.Fault(path+".classes", fmt.Sprintf("the reservations add up to %v", percents), fmt.Sprintf("change them by %s so that they add up to 100%%", off(int64(percents), int64(Whole), 4, "%")))
	case b.Classes[0].Reserve.IsRate && rates != b.Limit.Rate && limited:
		k.Fault(path+".classes", fmt.Sprintf("the reservations add up to %v", Amount{rates, b.Limit.Unit}), fmt.Sprintf("make them add up to the limit, %v", b.Limit))
	}
}

// off writes the signed difference between want and got.
func off(got, want int64, digits int, unit string) string {
	if got > want {
		return "-" + decimal(got-want, digits) + unit
	}
	return "+" + decimal(want-got, digits) + unit
}

// classNames lists a budget's classes.
func (b *Budget) classNames() []string {
	names := make([]string, len(b.Classes))
	for i := range b.Classes {
		names[i] = b.Classes[i].Name
	}
	return names
}

func (k *checker) cells(path string, b *Budget) {
	first := map[[2]string]int{}
	floors := map[string]allocator.Rate{}
	for i := range b.Cells {
		at, cell := fmt.Sprintf("%s.cells[%d]", path, i), &b.Cells[i]
		node := k.known(at+".node", "node", cell.Node, k.c.nodeNames())
		if !k.known(at+".class", "class", cell.Class, b.classNames()) || !node {
			continue
		}
		who := [2]string{cell.Node, cell.Class}
		if j, again := first[who]; again {
			k.Fault(at, fmt.Sprintf("class %s on node %s is bounded twice, also by cells[%d]", cell.Class, cell.Node, j), "put floor and cap into one entry")
			continue
		}
		first[who] = i
		k.cell(at, b, cell)
		if cell.Floor != nil && !k.Bad(at+".floor") {
			floors[cell.Class] = min(floors[cell.Class]+cell.Floor.Rate, MaxRate)
		}
	}
	reservations, ok := b.reservations()
	if !ok || k.Bad(path+".classes") || k.Bad(path+".limit") {
		return
	}
	for i := range b.Classes {
		if sum := floors[b.Classes[i].Name]; sum > reservations[i] {
			k.Fault(path+".cells", fmt.Sprintf("the floors of class %s add up to %v, above its reservation of %v", b.Classes[i].Name, Amount{sum, b.Limit.Unit}, Amount{reservations[i], b.Limit.Unit}), "lower the floors or reserve more")
		}
	}
}

func (k *checker) cell(path string, b *Budget, cell *Cell) {
	unit := func(field string, a *Amount) {
		if a != nil && a.Unit != b.Limit.Unit && !k.Bad(path+"."+field) && b.Limit.Unit != "" {
			k.Fault(path+"."+field, fmt.Sprintf("%v is not in the limit's unit, %s", *a, b.Limit.Unit), "write it in the same unit")
		}
	}
	unit("floor", cell.Floor)
	unit("cap", cell.Cap)
	switch {
	case !k.Given(path+".floor") && !k.Given(path+".cap"):
		k.Fault(path, "bounds nothing", "write floor, cap or both, or remove the entry")
	case cell.Floor != nil && cell.Cap != nil && cell.Floor.Rate > cell.Cap.Rate && !k.Bad(path+".floor"):
		k.Fault(path+".cap", fmt.Sprintf("%v is below the floor %v", *cell.Cap, *cell.Floor), "write a cap of at least the floor")
	}
}

// reservations turns the classes' portions into rates that add up to the limit,
// percentages by largest remainder with ties to the higher priority. It reports
// false when they do not share out the limit.
func (b *Budget) reservations() ([]allocator.Rate, bool) {
	out := make([]allocator.Rate, len(b.Classes))
	parts := make([]int64, len(b.Classes))
	var sum allocator.Rate
	var whole int64
	for i := range b.Classes {
		out[i] = b.Classes[i].Reserve.Amount.Rate
		parts[i] = int64(b.Classes[i].Reserve.Percent)
		sum = min(sum+out[i], MaxRate+1)
		whole += parts[i]
	}
	if len(out) == 0 || b.Classes[0].Reserve.IsRate {
		return out, len(out) > 0 && sum == b.Limit.Rate
	}
	if whole != int64(Whole) {
		return nil, false
	}
	out, err := allocator.LargestRemainder(b.Limit.Rate, parts)
	return out, err == nil
}
