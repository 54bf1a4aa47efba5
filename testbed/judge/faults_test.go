package judge

import (
	"testing"

	"subak/testbed/evidence"
)

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
