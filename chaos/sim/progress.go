package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress writes how far the campaign is: in place on a terminal, else as a
// line every 10 s, until done is closed.
func (c *campaign) progress(done <-chan struct{}, errs io.Writer) {
	every, before, after := 10*time.Second, "", "\n"
	if f, ok := errs.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		every, before, after = 500*time.Millisecond, "\r\x1b[K", ""
		defer fmt.Fprint(errs, before)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			fmt.Fprint(errs, before, c.line(), after)
		}
	}
}

// line is the state of the campaign as a person reads it.
func (c *campaign) line() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	pace := float64(c.total.seeds) / time.Since(c.start).Seconds()
	eta := "?"
	if pace > 0 {
		left := time.Duration(float64(c.seeds-uint64(c.total.seeds)) / pace * float64(time.Second))
		if c.limit > 0 {
			left = min(left, c.limit-time.Since(c.start))
		}
		eta = left.Round(time.Second).String()
	}
	return fmt.Sprintf("sim: %d of %d seeds, %.0f seeds/s, peak %.3f, %s left", c.total.seeds, c.seeds, pace, float64(c.total.peak)/1e6, eta)
}
