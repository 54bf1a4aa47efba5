package judge

import (
	"testing"

	"subak/testbed/evidence"
)

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
