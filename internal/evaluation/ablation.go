package evaluation

import (
	"fmt"

	"subak/allocator"
)

// Ablations are the product's rule with one thing changed at a time: what each of
// its parts is worth, and what was tried and does not help. The first one is the
// product's rule itself: pool-first, insurance 10 %, revocable.
func Ablations() []Method {
	var all []Method
	add := func(m Method) { all = append(all, m) }
	vary := func(name, title, words string, change func(*allocator.Spec)) {
		add(product(name, title, words, change, nil))
	}
	vary("product", "the product's rule", "pool-first, insurance 10 %, revocable", nil)
	plain := product("not-revocable", "nothing revocable", "a location's classes do not use each other's unused part", nil, nil)
	plain.Revocable = false
	add(plain)
	vary("no-insurance", "no insurance", "the first class has nothing in reserve", func(s *allocator.Spec) { s.InsurancePPM = 0 })
	for _, h := range []struct {
		name  string
		rule  allocator.Headroom
		words string
	}{{"owner-keeps", allocator.HeadroomOwnerKeeps, "stays where it is"}, {"by-demand", allocator.HeadroomByDemand, "goes to where the demand is"}} {
		vary("headroom-"+h.name, "headroom "+h.name, "what nobody asks for "+h.words, func(s *allocator.Spec) { s.Headroom = h.rule })
	}
	for _, percent := range []int64{0, 25, 50} {
		vary(fmt.Sprintf("lend%d", percent), fmt.Sprintf("lend at most %d %%", percent), "of its reservation each class lends at most this", func(s *allocator.Spec) {
			for k := range s.Classes {
				s.Classes[k].Lend = percent * allocator.Whole / 100
			}
		})
	}
	for _, percent := range []int64{0, 10, 25, 50} {
		vary(fmt.Sprintf("borrow%d", percent), fmt.Sprintf("borrow at most %d %%", percent), "of its reservation each class borrows at most this on top", func(s *allocator.Spec) {
			for k := range s.Classes {
				s.Classes[k].Borrow = percent * allocator.Whole / 100
			}
		})
	}
	return append(all, estimates()...)
}

// estimates are ways to be told another demand than the last one seen.
func estimates() (all []Method) {
	add := func(name, title, words string, by func(nodes int) estimator) {
		all = append(all, product(name, title, words, nil, by))
	}
	for _, percent := range []int64{2, 5, 10} {
		ppm := percent * allocator.Whole / 100
		add(fmt.Sprintf("hysteresis%d", percent), fmt.Sprintf("hysteresis %d %%", percent), "demand that moved by less is not heard",
			func(int) estimator { return &hysteresis{up: ppm, down: ppm} })
	}
	add("hysteresis-down10", "hysteresis 10 %, downward only", "raised at once, lowered by more than a tenth only",
		func(int) estimator { return &hysteresis{down: allocator.Whole / 10} })
	for _, cycles := range []int{2, 4, 8} {
		add(fmt.Sprintf("window%d", cycles), fmt.Sprintf("most of %d cycles", cycles), "peak-hold", func(int) estimator { return &window{cycles: cycles} })
	}
	for _, part := range []int64{2, 4} {
		add(fmt.Sprintf("smooth%d", part), fmt.Sprintf("smoothed, 1/%d a cycle", part), "an average that forgets", func(int) estimator { return &smooth{up: part, down: part} })
		add(fmt.Sprintf("slow-down%d", part), fmt.Sprintf("raised at once, lowered by 1/%d", part), "asymmetric smoothing", func(int) estimator { return &smooth{up: 1, down: part} })
	}
	add("trend50", "trend, half a step on", "goes on by half of the last step", func(int) estimator { return &trend{part: allocator.Whole / 2} })
	for _, percent := range []int64{10, 20, 30} {
		ppm := percent * allocator.Whole / 100
		add(fmt.Sprintf("forecast%d", percent), fmt.Sprintf("forecast, %d %% back to usual", percent), "each cell comes back to its own mean", func(n int) estimator { return &forecast{back: ppm, nodes: n} })
		add(fmt.Sprintf("common%d", percent), fmt.Sprintf("forecast by all, %d %%", percent), "each cell comes back to its usual part of what its class asks for now", func(n int) estimator {
			return &forecast{back: ppm, nodes: n, common: true}
		})
	}
	add("margin100", "margin of its usual move", "the first class asks for what its demand usually moves by on top", func(n int) estimator {
		return &margin{part: allocator.Whole, nodes: n}
	})
	return all
}

// product is the product's rule with a change.
func product(name, title, words string, change func(*allocator.Spec), by func(int) estimator) Method {
	return Method{
		Name: name, Title: title, Words: words, Revocable: true, guardPPM: allocator.Whole, estimate: by,
		change: func(s *allocator.Spec) {
			poolFirst(10)(s)
			if change != nil {
				change(s)
			}
		},
	}
}
