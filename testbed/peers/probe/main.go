// Command probe decides as fast as it can and says what that took. It exists to
// be built twice, once without the counters of the decision path: see package
// counters. Time is made up, so that what reading a clock takes hides nothing: 40 ns
// go by with every decision. Each line of standard input is a number of decisions and a number
// of goroutines; each line of output is the nanoseconds that they took.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"subak/allocator"
	"subak/enforce"
)

const (
	high = 1_000_000_000 // units per second: nothing that a loop does reaches it
	each = 40            // nanoseconds that a decision takes, as the limiter is told
)

func main() {
	now := int64(1e9)
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, now)
	r := allocator.Rate(high) * allocator.Unit
	l.SetSchedule(now, []enforce.Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r / 2, r / 2}}})
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		var n, goroutines int
		if _, err := fmt.Sscan(s.Text(), &n, &goroutines); err != nil || goroutines < 1 {
			fmt.Fprintln(os.Stderr, "probe: want a number of decisions and one of goroutines")
			os.Exit(2)
		}
		fmt.Println(int64(decide(l, now, n/goroutines, goroutines)))
		now += int64(n/goroutines) * each
	}
}

// decide makes n decisions on each of some goroutines, all of the first class, from
// the instant now on.
func decide(l *enforce.Limiter, now int64, n, goroutines int) time.Duration {
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			<-gate
			for i := range int64(n) {
				l.DecideRequest(now+i*each, enforce.Request{Cost: 1})
			}
		})
	}
	start := time.Now()
	close(gate)
	wg.Wait()
	return time.Since(start)
}
