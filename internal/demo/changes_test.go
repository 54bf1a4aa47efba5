package demo

import (
	"strings"
	"testing"
	"time"

	"subak/testbed/load"
	"subak/testbed/origin"
)

// goodChanges is what a run gives in which all goes as it should.
func goodChanges() (ChangesResult, load.Report) {
	p := changesPlan(1000, 1)
	r := ChangesResult{Limit: 1000, Seed: 1, Spread: 4 * time.Millisecond}
	windows := func(limit int64) []WindowResult {
		p.limit = limit
		var all []WindowResult
		for _, w := range changeWindows {
			b := p.bound(w, r.Spread)
			all = append(all, WindowResult{w, b, b * 9 / 10, b})
		}
		return all
	}
	before := int64(1000)
	for _, s := range p.changesScript(1) {
		x := StepResult{Name: s.name, Title: s.title, UnderWay: windows(max(before, s.limit)), Settled: windows(s.limit)}
		x.Floor = servedLeast * float64(min(before, s.limit))
		x.Least = 0.95 * float64(min(before, s.limit))
		if s.edit != nil {
			x.Epoch, x.InForce = "2-aa", 310*time.Millisecond
		}
		r.Steps, before = append(r.Steps, x), s.limit
	}
	return r, load.Report{Streams: []load.StreamReport{{Cells: []load.Cell{{Offered: 1000, Admitted: 900, Late: 2}}}}}
}

func TestAGoodRunOfChangesIsKeptAndReadsWell(t *testing.T) {
	r, l := goodChanges()
	r.judge(l)
	if !r.OK() || r.changes() != 6 {
		t.Errorf("broken %q, void %q, %d changes", r.Broken, r.Void, r.changes())
	}
	for line := range strings.Lines(changesTable(&r)) {
		if n := len([]rune(line)); n > 105 {
			t.Errorf("line of %d characters: %s", n, line)
		}
	}
	golden(t, "changes.txt", changesTable(&r)+r.Verdict+"\n")
	if (&ChangesResult{}).OK() {
		t.Error("a run without steps is OK")
	}
}

func TestEachFaultOfChangesIsFoundAndNamed(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(*ChangesResult, *load.Report)
		verdict string
	}{
		"too many under way": {func(r *ChangesResult, _ *load.Report) {
			r.Steps[1].UnderWay[1].Prompt = r.Steps[1].UnderWay[1].Bound + 1
		}, "BROKEN: cut, under way: 1,517 requests reached the origin within 1s, the bound is 1,516"},
		"too many in force":      {func(r *ChangesResult, _ *load.Report) { r.Steps[6].Settled[0].Prompt = 9999 }, "BROKEN: forget, in force: 9,999 requests"},
		"late ones count not":    {func(r *ChangesResult, _ *load.Report) { r.Steps[1].UnderWay[1].Peak = 1 << 20 }, "changes kept"},
		"service interrupted":    {func(r *ChangesResult, _ *load.Report) { r.Steps[4].Least = 699 }, "BROKEN: join: service fell to 699/s, at least 700/s was to be served"},
		"a request lost":         {func(r *ChangesResult, _ *load.Report) { r.Steps[5].Errors = 1 }, "BROKEN: remove: 1 requests to live nodes had no answer"},
		"nobody watched":         {func(r *ChangesResult, _ *load.Report) { r.Steps[2].Settled = nil }, "BROKEN: restore: the origin did not watch all of it"},
		"two things":             {func(r *ChangesResult, _ *load.Report) { r.Steps[4].Least, r.Steps[5].Errors = 0, 7 }, "BROKEN: join: service fell to 0/s"},
		"the generator is late":  {func(_ *ChangesResult, l *load.Report) { l.Streams[0].Cells[0].Late = 500 }, "no verdict: the generator was late"},
		"the network is slow":    {func(r *ChangesResult, _ *load.Report) { r.Spread = spreadMost + 1 }, "no verdict: one request in a thousand took"},
		"too busy for a verdict": {func(r *ChangesResult, l *load.Report) { r.Steps[5].Errors, l.Streams[0].Cells[0].Overflow = 7, 500 }, "no verdict: "},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := goodChanges()
			c.spoil(&r, &l)
			r.judge(l)
			if !strings.HasPrefix(r.Verdict, c.verdict) {
				t.Errorf("verdict %q, want %q", r.Verdict, c.verdict)
			}
			if ok := strings.HasPrefix(c.verdict, "changes kept"); r.OK() != ok {
				t.Errorf("OK %v, want %v", r.OK(), ok)
			}
			for _, line := range append(r.Broken, r.Void...) {
				if !strings.Contains(changesTable(&r), "! "+line) {
					t.Errorf("the table does not show %q", line)
				}
			}
		})
	}
}

func TestTheChangesEndInTimeAndSayWhatIsInForce(t *testing.T) {
	p := changesPlan(1000, 1)
	var length time.Duration
	limit := p.limit
	for _, s := range p.changesScript(1) {
		length += s.length
		if s.edit != nil && s.edit.Limit > 0 {
			limit = s.edit.Limit
		}
		if s.limit != limit {
			t.Errorf("%s: judged by a limit of %d, in force is %d", s.name, s.limit, limit)
		}
	}
	if length > time.Minute {
		t.Errorf("the changes take %v: too long to watch", length)
	}
}

func TestTheEmptiestHalfSecondIsFoundInItsStepAlone(t *testing.T) {
	r := origin.Report{Bin: 100 * time.Millisecond, Elapsed: 3 * time.Second}
	series := make([]uint32, 30)
	for i := range series {
		series[i] = 100
	}
	series[12] = 40 // in the half second from 1 s
	r.Series = [][]uint32{series, make([]uint32, 30)}
	for _, c := range []struct {
		from, to time.Duration
		want     float64
	}{
		{0, time.Second, 1000}, {time.Second, 2 * time.Second, 880}, {900 * time.Millisecond, 2 * time.Second, 880},
		{1100 * time.Millisecond, 2 * time.Second, 1000}, {0, 1400 * time.Millisecond, 1000}, // halves that are only partly in the step do not count
		{0, 3 * time.Second, 880}, {time.Second, 1200 * time.Millisecond, 0}, {5 * time.Second, 6 * time.Second, 0}, // nothing was seen: nothing was served
	} {
		if got := leastHalf(r, c.from, c.to); got != c.want {
			t.Errorf("%v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
