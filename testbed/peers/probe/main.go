// Command probe decides as fast as it can and says what that took. It exists to
// be built twice, once without the counters of the decision path: see package
// counters. Each line of standard input is a number of decisions and a number
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
	"subak/internal/clock"
)

const high = 1_000_000_000 // units per second: nothing that a loop does reaches it

func main() {
	now := clock.NewBoot().Now
	l := enforce.NewLimiter(enforce.LimiterConfig{Classes: 2}, now())
	r := allocator.Rate(high) * allocator.Unit
	l.SetSchedule(now(), []enforce.Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r / 2, r / 2}}})
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		var n, goroutines int
		if _, err := fmt.Sscan(s.Text(), &n, &goroutines); err != nil || goroutines < 1 {
			fmt.Fprintln(os.Stderr, "probe: want a number of decisions and one of goroutines")
			os.Exit(2)
		}
		fmt.Println(int64(decide(l, now, n, goroutines)))
	}
}

// decide makes n decisions on some goroutines, all of the first class.
func decide(l *enforce.Limiter, now func() int64, n, goroutines int) time.Duration {
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			<-gate
			for range n / goroutines {
				l.DecideRequest(now(), enforce.Request{Cost: 1})
			}
		})
	}
	start := time.Now()
	close(gate)
	wg.Wait()
	return time.Since(start)
}
