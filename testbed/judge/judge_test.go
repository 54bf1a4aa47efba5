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
				fill(r.Series[i].Offered[0], 0, 20, uint32(r.Weights[i]))
				fill(r.Series[i].Admitted[1], 6, 14, uint32(r.Weights[i]*89/100))
			}
		}, "left unused", true, "1.7 %"},
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
	trials(t, []trial{
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

func TestAFaultMustHaveHappened(t *testing.T) {
	story := cut + claims("kind: errors")
	slow := "faults: [{kind: slow, in: during, nodes: [sin], cpu: 5%}]\n" + claims("kind: errors")
	pause := "faults: [{kind: pause, in: during, nodes: [sin]}]\n" + claims("kind: errors")
	paused := func(r *evidence.Run) {
		r.Bands = append(r.Bands, band("pause", "pause", 6, 14, sin))
		shift(r, iad, sin, 100, 0, 6)
		fill(r.Series[sin].Up, 6, 14, 0)
	}
	with := func(f, more func(*evidence.Run)) func(*evidence.Run) {
		return func(r *evidence.Run) { f(r); more(r) }
	}
	const what = "every fault happened"
	trials(t, []trial{
		{"did", story, parted, what, true, "1 of 1"},
		{"was not played", story, nil, what, false, "partition was never played"},
		{"began late", story, with(parted, func(r *evidence.Run) { r.Bands[0].From = s(8.1) }), what, false, "began at 8.1s instead of 6s"},
		{"was short", story, with(parted, func(r *evidence.Run) { r.Bands[0].To = s(13) }), what, false, "lasted 7s instead of 8s"},
		{"blocked nothing", story, with(parted, func(r *evidence.Run) { r.Network["blocked"] = 0 }), what, false, "no packet was blocked"},
		{"no loans across it", story, with(parted, func(r *evidence.Run) { shift(r, fra, iad, 337, 0, 9) }), what, false, "was lent across it"},
		{"loans enough", story, with(parted, func(r *evidence.Run) { shift(r, fra, iad, 335, 0, 9) }), what, true, ""},
		{"failed", story, with(parted, func(r *evidence.Run) { r.Events = append(r.Events, event(7, -1, "failed", "partition no way")) }), what, false, "no way"},
		{"paused", pause, paused, what, true, ""},
		{"paused node answered", pause, with(paused, func(r *evidence.Run) { fill(r.Series[sin].Up, 6, 11, 1) }), what, false, "sin answered for 5s"},
		{"slow", slow, func(r *evidence.Run) { r.Bands = append(r.Bands, band("slow", "slow", 6, 14, sin)) }, what, true, ""},
		{"not slowed", slow, func(r *evidence.Run) {
			r.Bands = append(r.Bands, band("slow", "slow", 6, 14, sin))
			for b := range r.Series[sin].CPU {
				r.Series[sin].CPU[b] *= 11
			}
		}, what, false, "sin used 11.0 % of a core"},
		{"loss", "links: {loss: 30%}\n" + claims("kind: errors"), nil, what, true, "10 packets lost"},
		{"no loss", "links: {loss: 30%}\n" + claims("kind: errors"), func(r *evidence.Run) { r.Network["lost"] = 0 }, what, false, "no packet was lost"},
	})
}

func TestWhatEachKindOfFaultMustHaveDone(t *testing.T) {
	const what = "every fault happened"
	did := func(b evidence.Band, more ...func(*evidence.Run)) func(*evidence.Run) {
		return func(r *evidence.Run) {
			r.Bands = append(r.Bands, b)
			for _, f := range more {
				f(r)
			}
		}
	}
	lossless := func(r *evidence.Run) { r.Network["lost"] = 0 }
	lend := func(r *evidence.Run) { shift(r, iad, fra, 100, 0, 20) }
	links := "faults: [{kind: links, in: during, rule: {loss: 5%}}]\n" + claims("kind: errors")
	delay := "faults: [{kind: links, in: during, rule: {delay: 5ms}}]\n" + claims("kind: errors")
	restart := "faults: [{kind: restart, in: during}]\n" + claims("kind: errors")
	oneWay := "faults: [{kind: one-way, in: during, from: [ams], to: [fra]}]\n" + claims("kind: errors")
	naive := "variants: [{name: naive}]\n" + cut + claims("kind: bound-broken, variant: naive, least: 5%%")
	trials(t, []trial{
		{"links", links, did(band("links", "links", 6, 14)), what, true, ""},
		{"links without loss", links, did(band("links", "links", 6, 14), lossless), what, false, "no packet was lost"},
		{"links that only delay", delay, did(band("links", "links", 6, 14), lossless), what, true, ""},
		{"restart", restart, did(band("restart", "restart", 6, 7), func(r *evidence.Run) { r.Events = append(r.Events, event(7, ams, "start", "restart")) }), what, true, ""},
		{"nothing restarted", restart, did(band("restart", "restart", 6, 7)), what, false, "nothing was restarted"},
		{"one way", oneWay, did(band("one-way", "one-way", 6, 14), lend), what, true, ""},
		{"one way without loans at its ends", oneWay, did(band("one-way", "one-way", 6, 14), func(r *evidence.Run) { shift(r, iad, sin, 100, 0, 20) }), what, false, "was lent across"},
		{"a baseline has no loans", naive, did(band("partition", "partition", 6, 14), func(r *evidence.Run) { r.Variant = evidence.Naive }), what, true, ""},
	})
}

func TestTheSlowestNodeIsNamed(t *testing.T) {
	all := "faults: [{kind: restart, in: during}]\n" + claims("kind: ready, fault: restart, within: 2s")
	restarted := func(more ...evidence.Event) func(*evidence.Run) {
		return func(r *evidence.Run) {
			r.Bands = append(r.Bands, band("restart", "restart", 6, 7))
			r.Events = append(r.Events, more...)
		}
	}
	a, b, c := event(6, ams, "start", "restart"), event(6, fra, "start", "restart"), event(6, iad, "start", "restart")
	trials(t, []trial{
		{"slowest", all, restarted(a, b, c, event(7, ams, "ready", "restart"), event(8, fra, "ready", "restart"), event(6, iad, "ready", "restart")), "are ready", true, "2s at fra, the last of 3"},
		{"one is missing", all, restarted(a, b, c, event(7, ams, "ready", "restart"), event(9, iad, "ready", "restart")), "are ready", false, "never at fra"},
		{"ready before it was started", all, restarted(b, event(5.9, fra, "ready", "restart")), "are ready", false, "never at fra"},
		{"twice", all, restarted(a, event(7, ams, "ready", "restart"), event(10, ams, "start", "restart"), event(12.1, ams, "ready", "restart")), "are ready", false, "2.1s at ams, the last of 2"},
	})
}

func TestNodesThatDoNotComeBackAreNotHealed(t *testing.T) {
	dead := kill + claims("kind: live, fault: kill, within: 5s")
	forever := "faults: [{kind: kill, at: 6s, nodes: [iad]}]\n" + claims("kind: live, fault: kill, within: 5s")
	trials(t, []trial{
		{"back", dead, killed, "every node sees", true, "0s"},
		{"not back", dead, func(r *evidence.Run) { killed(r); fill(r.Series[iad].Up, 14, 20, 0) }, "every node sees", false, "not all nodes were up again"},
		{"dead to the end", forever, func(r *evidence.Run) {
			killed(r)
			r.Bands[0].To = r.Length
			fill(r.Series[iad].Up, 14, 20, 0)
		}, "every node sees", false, "not within"},
	})
}

func TestTheLimitThatBindsIsTheSmallerWhileItChanges(t *testing.T) {
	j := judge{r: healthy()}
	j.r.Limits = []evidence.Limit{{At: s(6), In: s(7), Limit: 1600}, {At: s(10), In: s(12), Limit: 2000}}
	for at, want := range map[int]float64{59: 3200, 60: 1600, 70: 1600, 100: 1600, 119: 1600, 120: 2000, 199: 2000} {
		if got := j.limit(at); got != want {
			t.Errorf("bin %d: got %v, want %v", at, got, want)
		}
	}
}

// A node that joins has no base in the first roster, and nobody complains of it
// before it was ready.
func TestANodeThatJoinsIsJudgedFromWhenItWasReady(t *testing.T) {
	joins := "absent: [sin]\nfaults: [{kind: join, in: during, nodes: [sin]}]\n" + claims("kind: silence")
	joined := func(ready, admits float64) func(*evidence.Run) {
		return func(r *evidence.Run) {
			r.Bands = append(r.Bands, band("join", "join", 6, 8))
			fill(r.Series[sin].Up, 0, 7, 0)
			fill(r.Series[sin].Ready, 0, ready, 0)
			fill(r.Series[sin].Admitted[1], 0, admits, 0)
		}
	}
	trials(t, []trial{
		{"refuses until ready", joins, joined(13, 13), "admits nothing", true, "0s at"},
		{"and long after", joins, joined(7, 13.1), "admits nothing", false, "6.1s after the start of sin"},
	})
	j := judge{s: story(t, joins), r: healthy()}
	if j.base(sin, 0) != 0 || j.base(ams, 0) != 3200*55./275 {
		t.Errorf("got bases %v and %v", j.base(sin, 0), j.base(ams, 0))
	}
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

const kill = "faults: [{kind: kill, in: during, nodes: [iad]}]\n"

// killed is iad dead from 6 s to 14 s with 600/s borrowed from fra and gru, which
// they have back at 9.2 s.
func killed(r *evidence.Run) {
	r.Bands = append(r.Bands, band("kill", "kill", 6, 14, iad))
	r.Events = append(r.Events, event(6, iad, "kill", "kill"), event(14, iad, "start", "kill"), event(17, iad, "ready", "kill"))
	shift(r, fra, iad, 400, 0, 9.2)
	shift(r, gru, iad, 200, 0, 9.2)
	fill(r.Series[iad].Up, 6, 14, 0)
}

func TestWhatADeadNodeBorrowedIsReusedAfterItsLease(t *testing.T) {
	reuse, ready := kill+claims("kind: reuse, fault: kill"), kill+claims("kind: ready, fault: kill, within: 3s")
	with := func(more func(*evidence.Run)) func(*evidence.Run) {
		return func(r *evidence.Run) { killed(r); more(r) }
	}
	const early, late = "not used before", "used soon after"
	trials(t, []trial{
		{"not before", reuse, killed, early, true, "others at most 1,650/s"},
		{"and soon after", reuse, killed, late, true, "after 3.2s"},
		{"before", reuse, with(func(r *evidence.Run) { shift(r, iad, fra, 40, 7.5, 9.2) }), early, false, "1,690/s"},
		{"within what demand wanders", reuse, with(func(r *evidence.Run) { shift(r, iad, fra, 30, 7.5, 9.2) }), early, true, ""},
		{"for an instant, seen at two of them", reuse, with(func(r *evidence.Run) { shift(r, iad, fra, 300, 7.5, 7.6) }), early, true, ""},
		{"late", reuse, with(func(r *evidence.Run) { shift(r, fra, iad, 400, 9.2, 10.7) }), late, false, "after 4.7s"},
		{"never", reuse, with(func(r *evidence.Run) { shift(r, fra, iad, 400, 9.2, 20) }), late, false, "never"},
		{"nothing borrowed", reuse, func(r *evidence.Run) { killed(r); shift(r, iad, fra, 600, 0, 6) }, early, false, noBiteWords},
		{"back too soon", reuse, with(func(r *evidence.Run) { r.Bands[0].To = s(10) }), early, false, noBiteWords},
		{"ready", ready, killed, "are ready", true, "3s"},
		{"not in time", ready, with(func(r *evidence.Run) { r.Events[2].At++ }), "are ready", false, "3s"},
		{"never ready", ready, with(func(r *evidence.Run) { r.Events = r.Events[:2] }), "are ready", false, "never at iad"},
		{"not started", ready, with(func(r *evidence.Run) { r.Events = r.Events[:1] }), "are ready", false, noBiteWords},
	})
}

const stop = "faults: [{kind: stop, in: during, nodes: [fra]}]\n"

// stopped is fra told to stop at 6 s, gone from the others' view at 6.4 s and ended
// at 16.9 s.
func stopped(r *evidence.Run) {
	r.Bands = append(r.Bands, band("stop", "stop", 6, 14, fra))
	r.Events = append(r.Events, event(6, fra, "stop", "stop"), event(16.9, fra, "exit", "stop after 10.9s"))
	for _, i := range []int{ams, iad, gru, sin} {
		fill(r.Series[i].Live, 6.4, 20, 4)
	}
}

func TestALeaveIsSeenAndTheProcessEnds(t *testing.T) {
	seen, exit := stop+claims("kind: leave-seen, fault: stop, within: 500ms"), stop+claims("kind: exit, fault: stop, within: 11s")
	with := func(more func(*evidence.Run)) func(*evidence.Run) {
		return func(r *evidence.Run) { stopped(r); more(r) }
	}
	trials(t, []trial{
		{"seen", seen, stopped, "others see", true, "400ms"},
		{"seen late by one", seen, with(func(r *evidence.Run) { fill(r.Series[sin].Live, 6.4, 6.6, 5) }), "others see", false, "600ms"},
		{"never seen", seen, with(func(r *evidence.Run) { fill(r.Series[sin].Live, 6, 20, 5) }), "others see", false, "never"},
		{"not counted before", seen, with(func(r *evidence.Run) {
			for _, i := range []int{ams, iad, gru, sin} {
				fill(r.Series[i].Live, 0, 20, 4)
			}
		}), "others see", false, noBiteWords},
		{"ended", exit, stopped, "has ended", true, "10.9s"},
		{"ended late", exit, with(func(r *evidence.Run) { r.Events[1].At = s(17.1) }), "has ended", false, "11.1s"},
		{"never ended", exit, with(func(r *evidence.Run) { r.Events = r.Events[:1] }), "has ended", false, "never at fra"},
	})
}

func TestWhatOperatorsDo(t *testing.T) {
	apply := "faults: [{kind: apply, in: during, edit: {limit: 1600/s}}]\n" + claims("kind: in-force, fault: apply, within: 1s")
	poison := "faults: [{kind: poison, in: during, poison: [garbage, broken-file]}]\n" + claims("kind: refused, fault: poison")
	doctor := "faults: [{kind: doctor, in: during, nodes: [ams, sin]}]\n" + claims("kind: doctored, fault: doctor")
	events := func(all ...evidence.Event) func(*evidence.Run) {
		return func(r *evidence.Run) {
			r.Bands = append(r.Bands, band("apply", "apply", 6, 7), band("poison", "poison", 6, 7), band("doctor", "doctor", 6, 7))
			r.Events = append(r.Events, all...)
		}
	}
	no, no2 := event(6, ams, "refused", "poison garbage"), event(6, ams, "refused", "poison broken-file")
	trials(t, []trial{
		{"in force", apply, events(event(6, ams, "apply", "apply"), event(7, ams, "in-force", "apply")), "in force at every node", true, "1s"},
		{"too late", apply, events(event(6, ams, "apply", "apply"), event(7.1, ams, "in-force", "apply")), "in force at every node", false, "1.1s"},
		{"never", apply, events(event(6, ams, "apply", "apply")), "in force at every node", false, "never at ams"},
		{"another change", apply, events(event(6, ams, "apply", "apply"), event(6.5, ams, "in-force", "applyx")), "in force at every node", false, "never"},
		{"not applied", apply, events(), "in force at every node", false, noBiteWords},
		{"refused", poison, events(no, no2), "sent was refused", true, "2 of 2"},
		{"accepted", poison, events(no, event(6, ams, "accepted", "poison broken-file")), "sent was refused", false, "1 of 2, not broken-file"},
		{"not sent", poison, events(no), "sent was refused", false, noBiteWords},
		{"one configuration", poison, events(no, no2), "one configuration", true, "1"},
		{"two configurations", poison, func(r *evidence.Run) { events(no, no2)(r); r.Series[sin].Epoch[bins-1] = 2 }, "one configuration", false, "2"},
		{"well", doctor, events(event(7, ams, "doctor", "doctor ok"), event(7, sin, "doctor", "doctor ok")), "subak doctor", true, "ok at 2 of 2"},
		{"sick", doctor, events(event(7, ams, "doctor", "doctor ok"), event(7, sin, "doctor", "doctor no UDP from fra")), "subak doctor", false, "sin: no UDP from fra"},
		{"not asked", doctor, events(), "subak doctor", false, noBiteWords},
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
