package judge

import (
	"testing"
	"time"

	"subak/chaos/bound"
	"subak/testbed/evidence"
	"subak/testbed/load"
)

const noBiteWords = "the fault did not bite"

func TestTheBoundIsJudgedByTheWitness(t *testing.T) {
	kept := claims("kind: bound-kept")
	broken := "variants: [{name: subak}, {name: naive}]\n" + claims("kind: bound-broken, variant: naive, least: 10%%")
	worst := func(peak int64) func(*evidence.Run) {
		return func(r *evidence.Run) {
			r.Variant = evidence.Naive
			fill(r.Series[iad].Offered[1], 0, 20, 200)
			r.Origin.Bound.Results[1] = bound.Result{Window: s(10), Peak: peak, Bound: 30_000, Margin: 30_000 - peak}
		}
	}
	trials(t, []trial{
		{"kept", kept, nil, "never got more", true, "3,300 in the fullest 1s"},
		{"one too many in a window", kept, func(r *evidence.Run) {
			r.Origin.Bound.Results[0].Peak, r.Origin.Bound.Results[0].Margin = 4811, -1
		}, "never got more", false, "4,811 in the fullest 1s"},
		{"a window of another length", kept, func(r *evidence.Run) { r.Origin.Bound.LevelOK = false }, "never got more", false, "another length"},
		{"nothing arrived", kept, func(r *evidence.Run) { r.Origin.Bound.Total = 0 }, "never got more", false, noBiteWords},
		{"less than the limit was offered", kept, func(r *evidence.Run) {
			for i := range r.Series {
				fill(r.Series[i].Offered[1], 0, 20, uint32(r.Weights[i]))
			}
		}, "never got more", false, "at most 3,200 in a second were offered"},
		{"too many too late", kept, func(r *evidence.Run) { r.Origin.Slower = 641 }, "never got more", false, "cannot be told"},
		{"a few too late", kept, func(r *evidence.Run) { r.Origin.Slower = 640 }, "never got more", true, ""},
		{"broken by a tenth", broken, worst(33_000), "naive lets more", true, "10.0 % above: 33,000 in 10s where 30,000"},
		{"broken by less", broken, worst(32_999), "naive lets more", false, "above"},
		{"never above", broken, worst(29_000), "naive lets more", false, "never above"},
		{"not enough offered to break it", broken, func(r *evidence.Run) {
			worst(40_000)(r)
			fill(r.Series[iad].Offered[1], 0, 20, 95)
			for i := range r.Series {
				fill(r.Series[i].Offered[1], 0, 20, uint32(r.Weights[i]))
			}
		}, "naive lets more", false, noBiteWords},
	})
}

func TestServiceIsCountedWhereNodesAreUp(t *testing.T) {
	served := claims("kind: served, class: uncleared, nodes: [ams], phase: during, least: 90%%")
	idle := claims("kind: idle, phase: during, most: 2%%")
	errs := claims("kind: errors, count: 5")
	trials(t, []trial{
		{"served", served, func(r *evidence.Run) { fill(r.Series[ams].Admitted[1], 0, 20, 55) }, "uncleared at ams served", true, "91.7 % of 4,800"},
		{"not served", served, func(r *evidence.Run) { fill(r.Series[ams].Admitted[1], 6, 14, 53) }, "uncleared at ams served", false, "88.3 %"},
		{"what a dead node is offered does not count", served, func(r *evidence.Run) {
			fill(r.Series[ams].Admitted[1], 6, 7, 0)
			fill(r.Series[ams].Up, 6, 7, 0)
		}, "uncleared at ams served", true, "91.7 % of 4,200"},
		{"nothing offered", served, func(r *evidence.Run) { fill(r.Series[ams].Offered[1], 0, 20, 0) }, "uncleared at ams served", false, noBiteWords},
		{"nothing idle", idle, nil, "left unused", true, "0.0 %"},
		{"something idle", idle, func(r *evidence.Run) { fill(r.Series[iad].Admitted[1], 6, 14, 88) }, "left unused", false, "2.2 %"},
		{"but for the insurance of a tenth of confirmed", idle, func(r *evidence.Run) {
			for i := range r.Series {
				fill(r.Series[i].Offered[0], 0, 20, uint32(r.Weights[i]/2))
				fill(r.Series[i].Admitted[1], 6, 14, uint32(r.Weights[i]*94/100))
			}
		}, "left unused", true, "1.7 %"},
		{"which comes after all demand of confirmed", idle, func(r *evidence.Run) {
			for i := range r.Series {
				fill(r.Series[i].Offered[0], 0, 20, uint32(r.Weights[i]))
				fill(r.Series[i].Admitted[1], 6, 14, uint32(r.Weights[i]*94/100))
			}
		}, "left unused", false, "6.6 %"},
		{"a limit that is cut", idle, func(r *evidence.Run) {
			r.Limits = []evidence.Limit{{At: s(10.25), In: s(10.5), Limit: 1600}}
			for i := range r.Series {
				fill(r.Series[i].Admitted[1], 10.3, 14, uint32(r.Weights[i]/2))
			}
		}, "left unused", true, "0.4 %"},
		{"nothing to idle", idle, func(r *evidence.Run) { fill(r.Series[iad].Offered[1], 0, 20, 10) }, "left unused", false, noBiteWords},
		{"few errors", errs, func(r *evidence.Run) { r.Series[gru].Errors[1][80] = 5 }, "fail", true, "5 of"},
		{"too many errors", errs, func(r *evidence.Run) { r.Series[gru].Errors[1][80] = 6 }, "fail", false, "6 of 70,000, most at gru"},
		{"errors of a node that is down", errs, func(r *evidence.Run) {
			fill(r.Series[gru].Up, 8, 9, 0)
			fill(r.Series[gru].Errors[1], 7.9, 9.1, 100)
		}, "fail", true, "0 of"},
		{"errors of a node that is being stopped", errs, func(r *evidence.Run) {
			r.Events = append(r.Events, event(7, gru, "stop", "x"))
			fill(r.Series[gru].Up, 8, 9, 0)
			fill(r.Series[gru].Errors[1], 7, 9.1, 100)
		}, "fail", true, "0 of"},
	})
}

func TestSilenceIsJudgedApartAfterAStart(t *testing.T) {
	c := claims("kind: silence")
	quiet := func(i int, from, to float64) func(*evidence.Run) {
		return func(r *evidence.Run) { fill(r.Series[i].Admitted[1], from, to, 0) }
	}
	// 1.5 s + 3.03 s + 2 x (300 ms + 2 x 200 ms)
	restarted := func(silent float64) func(*evidence.Run) {
		return func(r *evidence.Run) {
			fill(r.Series[fra].Up, 6, 8, 0)
			quiet(fra, 6, 8+silent)(r)
		}
	}
	// back within a bin, so that its series shows no gap
	atOnce := func(silent float64) func(*evidence.Run) {
		return func(r *evidence.Run) {
			r.Events = append(r.Events, event(8.05, fra, "start", "restart"))
			quiet(fra, 7.7, 8+silent)(r)
		}
	}
	trials(t, []trial{
		{"a restart at once", c, atOnce(3), "admits nothing", true, "3s after the start of fra"},
		{"longer after a restart at once", c, atOnce(6), "admits nothing", false, "6s after the start of fra"},
		{"a second", c, quiet(sin, 7, 8), "admits nothing", true, "1s at sin"},
		{"more", c, quiet(sin, 7, 8.1), "admits nothing", false, "1.1s at sin"},
		{"nobody asked", c, func(r *evidence.Run) {
			quiet(sin, 7, 9)(r)
			fill(r.Series[sin].Offered[1], 7, 9, 0)
		}, "admits nothing", true, "0s at"},
		{"a lease after a start", c, restarted(5.9), "admits nothing", true, "5.9s after the start of fra"},
		{"longer after a start", c, restarted(6), "admits nothing", false, "6s after the start of fra"},
	})
}

const cut = "faults: [{kind: partition, in: during, groups: [[ams, fra]]}]\n"

// parted is a cut from 6 s to 14 s; fra had borrowed 400/s from iad. Each side
// keeps its bases once that is over.
func parted(r *evidence.Run) {
	r.Bands = append(r.Bands, band("partition", "partition", 6, 14))
	shift(r, iad, fra, 400, 0, 9)
	for i := range r.Series {
		own := 3
		if i <= fra {
			own = 2
		}
		fill(r.Series[i].Live, 9, 14.5, own)
	}
}

func TestASideOfACutUsesItsOwnBasesAndNoMore(t *testing.T) {
	used := cut + claims("kind: used, fault: partition")
	own := cut + claims("kind: own-base, fault: partition, nodes: [fra]")
	unseen := cut + claims("kind: unseen, fault: partition")
	with := func(more func(*evidence.Run)) func(*evidence.Run) {
		return func(r *evidence.Run) { parted(r); more(r) }
	}
	trials(t, []trial{
		{"used", used, parted, "cut off, ams, fra", true, "100.0 % of 1,350/s; bases enforced to 100.0 %"},
		{"used by the other side", used, parted, "cut off, iad, gru, sin", true, "100.0 % of 1,850/s"},
		{"served too little", used, with(func(r *evidence.Run) { fill(r.Series[fra].Admitted[1], 6, 14, 70) }), "cut off, ams, fra", false, "92.6 %"},
		{"enforced too little", used, with(func(r *evidence.Run) { fill(r.Series[fra].Share, 9, 14, 780) }), "cut off, ams, fra", false, "98.5 %"},
		{"asked for little", used, with(func(r *evidence.Run) {
			fill(r.Series[fra].Offered[1], 6, 14, 20)
			fill(r.Series[fra].Admitted[1], 6, 14, 20)
			fill(r.Series[ams].Admitted[1], 6, 14, 56)
		}), "cut off, ams, fra", true, "95.0 % of 800/s"},
		{"nobody asked for much", used, with(func(r *evidence.Run) {
			for i := range r.Series {
				fill(r.Series[i].Offered[1], 6, 14, 20)
			}
		}), "each side", false, noBiteWords},
		{"over too soon", used, with(func(r *evidence.Run) { r.Bands[0].To = s(10) }), "each side", false, noBiteWords},

		{"own base", own, parted, "keeps to its own base", true, "100.0 %"},
		{"more than its own base", own, with(func(r *evidence.Run) { fill(r.Series[fra].Share, 9, 9.3, 802) }), "keeps to its own base", false, "100.2 %"},
		{"nothing borrowed", own, with(func(r *evidence.Run) { shift(r, fra, iad, 400, 0, 9) }), "keeps to its own base", false, noBiteWords},

		{"unseen", unseen, parted, "stop counting", true, "3s"},
		{"seen for too long", unseen, with(func(r *evidence.Run) { fill(r.Series[sin].Live, 9, 10.2, 5) }), "stop counting", false, "4.2s"},
		{"seen again", unseen, with(func(r *evidence.Run) { fill(r.Series[sin].Live, 13.9, 14, 4) }), "stop counting", false, "never"},
		{"never seen", unseen, with(func(r *evidence.Run) {
			fill(r.Series[sin].Live, 0, 6, 3)
			fill(r.Series[iad].Live, 0, 6, 3)
			fill(r.Series[gru].Live, 0, 6, 3)
			fill(r.Series[ams].Live, 0, 6, 2)
			fill(r.Series[fra].Live, 0, 6, 2)
		}), "stop counting", false, noBiteWords},
	})
}

func TestHealingIsWhenAllSeeAllAndUseWhatThereIs(t *testing.T) {
	re := cut + claims("kind: reconverged, fault: partition, within: 1s")
	live := cut + claims("kind: live, fault: partition, within: 1s")
	digest := cut + claims("kind: digest, fault: partition, within: 1s")
	with := func(more func(*evidence.Run)) func(*evidence.Run) {
		return func(r *evidence.Run) { parted(r); more(r) }
	}
	trials(t, []trial{
		{"healed", re, parted, "every node sees", true, "500ms"},
		{"healed just in time", re, with(func(r *evidence.Run) { fill(r.Series[sin].Live, 14, 15, 3) }), "every node sees", true, "1s"},
		{"seen again too late", re, with(func(r *evidence.Run) { fill(r.Series[sin].Live, 14, 15.1, 3) }), "every node sees", false, "1.1s"},
		{"used again too late", re, with(func(r *evidence.Run) { fill(r.Series[sin].Share, 14, 15.1, 400) }), "every node sees", false, "1.1s"},
		{"never", re, with(func(r *evidence.Run) { fill(r.Series[sin].Live, 14, 20, 3) }), "every node sees", false, "not within 6s"},
		{"for a moment only", live, with(func(r *evidence.Run) { fill(r.Series[sin].Live, 14.7, 15.2, 3) }), "sees all others", false, "1.2s"},
		{"saw each other all the time", live, with(func(r *evidence.Run) {
			for i := range r.Series {
				fill(r.Series[i].Live, 6, 15, 5)
			}
		}), "sees all others", false, noBiteWords},
		{"agreed", digest, with(func(r *evidence.Run) { fill(r.Series[ams].Digest, 6, 14.8, "other") }), "views agree", true, "800ms"},
		{"agreed too late", digest, with(func(r *evidence.Run) { fill(r.Series[ams].Digest, 6, 15.1, "other") }), "views agree", false, "1.1s"},
	})
}

func TestReactionIsMeanAnd95thPercentileOfAllSteps(t *testing.T) {
	story := "steps: {count: 4, gap: 1s, rest: 500ms, class: confirmed, nodes: [ams], rate: 30%}\n" + claims("kind: reaction, within: 400ms, p95: 600ms")
	steps := func(millis ...int) func(*evidence.Run) {
		return func(r *evidence.Run) {
			for _, ms := range millis {
				r.Steps = append(r.Steps, evidence.Step{Node: ams, Before: 550, Target: 1000, Took: time.Duration(ms) * time.Millisecond})
			}
		}
	}
	trials(t, []trial{
		{"mean", story, steps(300, 400, 400, 500), "mean", true, "400ms over 4 steps, the slowest 500ms"},
		{"mean too long", story, steps(300, 400, 400, 501), "mean", false, ""},
		{"95th", story, steps(200, 200, 200, 600), "95th", true, "600ms"},
		{"95th too long", story, steps(200, 200, 200, 601), "95th", false, "601ms"},
		{"one never", story, steps(200, 200, 200, -1), "mean", false, "1 of 4 never did"},
		{"one missing", story, steps(200, 200, 200), "mean", false, noBiteWords},
		{"no step", story, func(r *evidence.Run) { steps(1, 1, 1, 1)(r); r.Steps[2].Target = 600 }, "mean", false, noBiteWords},
	})
}

func TestSharesThatMove(t *testing.T) {
	steady := claims("kind: steady, phase: during, most: 10%%")
	changes := claims("kind: changes, phase: during, nodes: [ams, fra], count: 2")
	latency := claims("kind: latency, phase: during, versus: calm, within: 2ms")
	p99 := func(ms int) func(*evidence.Run) {
		return func(r *evidence.Run) {
			for i := range r.Load.Streams {
				r.Load.Streams[i].Cells[1].RefusedLatency = load.Latency{P99: time.Duration(ms) * time.Millisecond}
				r.Load.Streams[i].Cells[1].Refused = 100
			}
		}
	}
	trials(t, []trial{
		{"steady", steady, func(r *evidence.Run) { r.Series[gru].Share[100] = 495 }, "near their medians", true, "10.0 % at gru"},
		{"not steady", steady, func(r *evidence.Run) { r.Series[gru].Share[100] = 404 }, "near their medians", false, "10.2 % at gru"},
		{"no shares", steady, func(r *evidence.Run) {
			for i := range r.Series {
				fill(r.Series[i].Share, 0, 20, 0)
			}
		}, "near their medians", false, noBiteWords},
		{"two changes", changes, func(r *evidence.Run) { r.Series[fra].Share[100] = 809 }, "changes of a share", true, "2 at fra"},
		{"small ones do not count", changes, func(r *evidence.Run) { fill(r.Series[fra].Share, 8, 9, 807); r.Series[fra].Share[100] = 809 }, "changes of a share", true, "2 at fra"},
		{"three changes", changes, func(r *evidence.Run) { r.Series[fra].Share[100] = 809; fill(r.Series[fra].Share, 11, 20, 809) }, "changes of a share", false, "3 at fra"},
		{"as before", latency, p99(8), "99th percentile", true, "6ms against 4ms"},
		{"slower", latency, p99(9), "99th percentile", false, "6.5ms against 4ms"},
		{"at most", claims("kind: latency, phase: during, within: 4ms"), nil, "99th percentile", true, "4ms"},
		{"above", claims("kind: latency, phase: during, within: 3ms"), nil, "99th percentile", false, "4ms"},
	})
}

func TestWhatANodeCosts(t *testing.T) {
	memory, cpu := claims("kind: memory, count: 40"), claims("kind: cpu, phase: during, most: 1%%")
	gossip, reported := claims("kind: gossip, phase: during, count: 1000"), claims("kind: gossip, phase: during")
	least, most := claims("kind: counter-at-least, counter: budget_node_dropped_total, count: 15"), claims("kind: counter-at-most, counter: budget_node_dropped_total, nodes: [ams], count: 3")
	dropped := func(n float64) func(*evidence.Run) {
		return func(r *evidence.Run) { r.Series[ams].Counters["budget_node_dropped_total"] = n }
	}
	trials(t, []trial{
		{"memory", memory, func(r *evidence.Run) { r.Series[gru].RSS[50] = 40_000_000 }, "resident", true, "40.0 MB at gru"},
		{"too much memory", memory, func(r *evidence.Run) { r.Series[gru].RSS[50] = 40_000_001 }, "resident", false, ""},
		{"memory not measured", memory, func(r *evidence.Run) {
			for i := range r.Series {
				r.Series[i].RSS = nil
			}
		}, "resident", false, noBiteWords},
		{"cpu", cpu, nil, "of a core", true, "1.00 %"},
		{"too much cpu", cpu, func(r *evidence.Run) { r.Series[gru].CPU[139] += 1_000_000 }, "of a core", false, "1.01 % at gru"},
		{"gossip", gossip, nil, "gossip sent", true, "1,000 bytes/s, mean 1,000"},
		{"too much gossip", gossip, func(r *evidence.Run) { r.Series[gru].GossipSent[139] += 100 }, "gossip sent", false, "most at gru"},
		{"reported only", reported, func(r *evidence.Run) { r.Series[gru].GossipSent[139] += 1e9 }, "gossip sent", true, ""},
		{"at least", least, nil, "dropped", true, "15"},
		{"below", least, dropped(2), "dropped", false, "14"},
		{"at most", most, nil, "dropped", true, "3"},
		{"above", most, dropped(4), "dropped", false, "4"},
		{"unknown counter", claims("kind: counter-at-most, counter: budget_x_total"), nil, "budget_x", false, noBiteWords},
	})
}

func TestEvidenceWithHolesIsOneBadVerdict(t *testing.T) {
	st := story(t, claims("kind: errors"))
	for name, spoil := range map[string]func(*evidence.Run){
		"nothing":   func(r *evidence.Run) { *r = evidence.Run{Variant: evidence.Subak} },
		"no series": func(r *evidence.Run) { r.Series = nil },
		"no load":   func(r *evidence.Run) { r.Load.Streams = nil },
	} {
		r := healthy()
		spoil(r)
		if v := Judge(&st, r); len(v) != 1 || v[0].Kept {
			t.Errorf("%s: got %+v", name, v)
		}
	}
}
