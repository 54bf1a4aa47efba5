package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"subak/testbed/evidence"
	"subak/testbed/scenario"
)

// who is the class and the nodes of a claim in words.
func (j *judge) who(c *scenario.Claim) string {
	what := "requests"
	if c.Class != "" {
		what = c.Class
	}
	if len(c.Nodes) > 0 {
		what += " at " + j.list(j.nodes(c.Nodes))
	}
	return what
}

// served judges what part of the requests to nodes that were up was admitted.
func (j *judge) served(c *scenario.Claim) evidence.Verdict {
	claim := j.who(c) + " served" + during(c.Phase)
	limit := "at least " + part(c.Least)
	offered, admitted := j.service(c.Nodes, c.Class, j.phase(c.Phase))
	if offered == 0 {
		return noBite(claim, limit, "nothing was offered")
	}
	got := admitted / offered
	return evidence.Verdict{
		Claim: claim, Bound: limit, Kept: got >= fraction(c.Least),
		Measured: fmt.Sprintf("%s of %s", percent(got), count(int64(offered))),
	}
}

// service sums what was offered to nodes that were up, and what they admitted.
func (j *judge) service(nodes []string, class string, w span) (offered, admitted float64) {
	classes := j.classes(class)
	for _, i := range j.nodes(nodes) {
		for b := w.from; b < w.to; b++ {
			if j.up(i, b) {
				offered += total(j.r.Series[i].Offered, classes, span{b, b + 1})
				admitted += total(j.r.Series[i].Admitted, classes, span{b, b + 1})
			}
		}
	}
	return offered, admitted
}

// idle judges how much of the limit was left unused in seconds that asked for it,
// beyond the insurance: room that the first class's clients would find at once is
// kept on purpose.
func (j *judge) idle(c *scenario.Claim) evidence.Verdict {
	claim := "of the limit left unused" + during(c.Phase) + " while more was asked for"
	limit := "at most " + part(c.Most)
	insured := fraction(j.s.Budget.Insurance)
	if insured > 0 {
		limit += ", and the insurance"
	}
	w, second := j.phase(c.Phase), max(1, int(time.Second/j.r.Bin))
	could, used := 0.0, 0.0
	for b := w.from; b+second <= w.to; b += second {
		offered, admitted := j.service(nil, "", span{b, b + second})
		first, _ := j.service(nil, j.r.Classes[0], span{b, b + second})
		most := 0.0
		for k := b; k < b+second; k++ {
			most += j.limit(k) * j.r.Bin.Seconds()
		}
		if offered >= most {
			most -= min(insured*first, max(0, most-first)) // served after all demand of its class
			could, used = could+most, used+min(admitted, most)
		}
	}
	if could == 0 {
		return noBite(claim, limit, "in no second more than the limit was offered")
	}
	got := 1 - used/could
	return evidence.Verdict{Claim: claim, Bound: limit, Measured: percent(got), Kept: got <= fraction(c.Most)}
}

// quiet is a time in which a node that was up admitted nothing it was asked for.
type quiet struct {
	node    int
	length  time.Duration
	restart bool // it began with the start of the process
}

// leastAsked is how many requests make a silence one.
const leastAsked = 3

// silences finds the longest silence of a node, apart for those that begin with
// the start of its process.
func (j *judge) silences(i int) (longest, afterStart quiet) {
	longest, afterStart = quiet{node: i}, quiet{node: i, restart: true}
	classes, run, asked := j.classes(""), 0, 0.0
	restart := false
	end := func() {
		worst := &longest
		if restart {
			worst = &afterStart
		}
		if length := time.Duration(run) * j.r.Bin; asked >= leastAsked && length > worst.length {
			worst.length = length
		}
		run, asked = 0, 0
	}
	for b := 0; b < j.bins(); b++ {
		w := span{b, b + 1}
		if !j.serves(i, b) || total(j.r.Series[i].Admitted, classes, w) > 0 {
			end()
			continue
		}
		begins := j.begins(i, b)
		if begins {
			end() // of the life before
		}
		if run == 0 {
			restart = begins || b > 0 && (j.begins(i, b-1) || !j.serves(i, b-1))
		}
		run++
		asked += total(j.r.Series[i].Offered, classes, w)
	}
	end()
	return longest, afterStart
}

// begins reports whether a process of node i was started in a bin; one that is
// back within a bin was never down by its series.
func (j *judge) begins(i, b int) bool {
	return slices.ContainsFunc(j.r.Events, func(e evidence.Event) bool {
		return e.Kind == "start" && e.Node == i && j.bin(e.At) == b
	})
}

// serves reports whether a node is up and meant to serve: one that joins is so
// from when it was first ready.
func (j *judge) serves(i, b int) bool {
	if !j.up(i, b) {
		return false
	}
	if slices.Contains(j.s.Absent, j.r.Nodes[i]) {
		ready := slices.Index(j.r.Series[i].Ready, 1)
		return ready >= 0 && b >= ready
	}
	return true
}

// silenceMost is how long a node that was not restarted may admit nothing.
const silenceMost = time.Second

// silence judges that no node is without service for longer than the design says.
func (j *judge) silence(c *scenario.Claim) evidence.Verdict {
	most := silenceMost
	if c.Within > 0 {
		most = c.Within
	}
	claim := "no node that is up and asked admits nothing for long"
	limit := fmt.Sprintf("at most %s; %s after a start", duration(most), duration(j.comeback()))
	asked := false
	var worst, start quiet
	for _, i := range j.nodes(c.Nodes) {
		asked = asked || total(j.r.Series[i].Offered, j.classes(""), j.phase("")) > 0
		if a, s := j.silences(i); true {
			worst, start = longer(worst, a), longer(start, s)
		}
	}
	if !asked {
		return noBite(claim, limit, "nothing was offered")
	}
	said := []string{fmt.Sprintf("%s at %s", duration(worst.length), j.r.Nodes[worst.node])}
	if start.length > 0 {
		said = append(said, fmt.Sprintf("%s after the start of %s", duration(start.length), j.r.Nodes[start.node]))
	}
	return evidence.Verdict{
		Claim: claim, Bound: limit, Measured: strings.Join(said, "; "),
		Kept: worst.length <= most && start.length <= j.comeback(),
	}
}

func longer(a, b quiet) quiet {
	if b.length > a.length {
		return b
	}
	return a
}

// errors judges requests without an answer, or with one of 500 and above, to nodes
// that were up a bin before and after.
func (j *judge) errors(c *scenario.Claim) evidence.Verdict {
	claim := "requests to nodes that are up fail" + during(c.Phase)
	limit := "none"
	if c.Count > 0 {
		limit = "at most " + count(c.Count)
	}
	w, classes := j.phase(c.Phase), j.classes("")
	failed, offered := 0.0, 0.0
	by := map[int]float64{}
	for _, i := range j.nodes(c.Nodes) {
		leaving := j.goes(i)
		for b := w.from; b < w.to; b++ {
			if !j.up(i, b) || !j.up(i, b-1) && b > 0 || !j.up(i, b+1) && b+1 < j.bins() || leaving[b] {
				continue
			}
			offered += total(j.r.Series[i].Offered, classes, span{b, b + 1})
			by[i] += total(j.r.Series[i].Errors, classes, span{b, b + 1})
		}
		failed += by[i]
	}
	if offered == 0 {
		return noBite(claim, limit, "nothing was offered")
	}
	v := evidence.Verdict{Claim: claim, Bound: limit, Kept: failed <= float64(c.Count)}
	v.Measured = fmt.Sprintf("%s of %s", count(int64(failed)), count(int64(offered)))
	if worst := j.most(by); failed > 0 {
		v.Measured += ", most at " + j.r.Nodes[worst]
	}
	return v
}

// goes marks the bins from a node's stop, or the one before, until it is up again:
// its balancer has left it.
func (j *judge) goes(i int) []bool {
	out := make([]bool, j.bins()+1)
	for _, e := range j.events("", "stop", "kill") {
		if e.Node != i {
			continue
		}
		gone := false
		for b := max(0, j.bin(e.At)-1); b < len(out); b++ {
			if gone = gone || !j.up(i, b); gone && j.up(i, b) {
				break
			}
			out[b] = true
		}
	}
	return out
}

// most is the key of the largest value, the least such key.
func (j *judge) most(by map[int]float64) (worst int) {
	for i := range j.r.Nodes {
		if by[i] > by[worst] {
			worst = i
		}
	}
	return worst
}
