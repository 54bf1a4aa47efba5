package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"

	"subak/testbed/origin"
)

const (
	// spreadMax bounds how slow a request may be between client and origin and
	// still be judged: the bound is the looser by it. The spread is what 99 % of
	// the requests keep to, up to this.
	spreadMax = 250 * time.Millisecond
	// slowerMax is how many may be slower, in percent, before the verdict would
	// rest on too little. A paused node makes some much slower.
	slowerMax = 2
	// arrivalsMin is how many requests a verdict needs.
	arrivalsMin = 1000
)

// printVerdict asks the origin to judge what it saw.
func printVerdict(ctx context.Context, s *scene) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client := originClient()
	r, err := client.Report(ctx)
	if err != nil {
		return err
	}
	j, err := client.Judge(ctx, origin.Claim{
		Limit: s.limit, Burst: s.burst, Slots: s.slots(), Spread: min(r.Transit.P99, spreadMax),
	})
	if err != nil {
		return err
	}
	return conclude(os.Stdout, r, j)
}

// conclude prints the evidence and the verdict as the last line. Its error, if
// any, is an [answer].
func conclude(w io.Writer, r origin.Report, j origin.Judgement) error {
	var all, slower uint64
	for _, p := range r.Phases {
		for _, n := range p.Arrivals {
			all += n
		}
	}
	for _, n := range j.Slower {
		slower += n
	}
	comma := func(n int64) string { return humanize.Comma(n) }
	fmt.Fprintf(w, "origin: %s requests in %s; %s took longer than %s to arrive and are not judged\n",
		comma(int64(all)), r.Elapsed.Round(time.Second), comma(int64(slower)), j.Claim.Spread.Round(100*time.Microsecond))
	for _, b := range j.Bound.Results {
		fmt.Fprintf(w, "  any %-6s at most %6s requests, the bound is %6s\n", b.Window, comma(b.Peak), comma(b.Bound))
	}
	fmt.Fprintf(w, "  any length %s above the limit's line, %s are allowed\n", comma(j.Bound.Level), comma(j.Bound.LevelMax))
	void := ""
	switch {
	case !j.Bound.OK():
		worst := j.Bound.Worst()
		fmt.Fprintf(w, "budget BROKEN: worst in %s: %s of %s requests\n", worst.Window, comma(worst.Peak), comma(worst.Bound))
		return answer(exitNo)
	case r.Dropped > 0:
		void = fmt.Sprintf("%s arrivals came after the log was full; reset it sooner", comma(int64(r.Dropped)))
	case all < arrivalsMin:
		void = fmt.Sprintf("only %d requests arrived, %d are needed", all, arrivalsMin)
	case slower*100 > all*slowerMax:
		void = fmt.Sprintf("%s of %s requests were slow; this machine is too busy", comma(int64(slower)), comma(int64(all)))
	}
	if void != "" {
		fmt.Fprintf(w, "no verdict: %s\n", void)
		return answer(exitNoVerdict)
	}
	worst := j.Bound.Worst()
	fmt.Fprintf(w, "budget kept: %s/s; the fullest window (%s) holds %s of %s requests\n",
		comma(j.Claim.Limit), worst.Window, comma(worst.Peak), comma(worst.Bound))
	return nil
}
