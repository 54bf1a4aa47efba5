package limit_test

import (
	"context"
	"fmt"
	"math"
	"time"

	"subak/allocator"
	"subak/enforce"
	"subak/enforce/limit"
)

// budgets finds limiters by name. A node has its own; a program that embeds one
// gets its handles from the node, and needs none of this.
type budgets map[string]*enforce.Limiter

func (b budgets) Limiter(budget, class string) (*enforce.Limiter, int, bool) {
	return b[budget], 0, b[budget] != nil && class == "work"
}

// newSet has one budget of 100 units per second, with a full bucket.
func newSet() *limit.Set {
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) }
	l := enforce.NewLimiter(enforce.LimiterConfig{
		Classes: 1, Tenants: []enforce.TenantConfig{{Share: 100_000}}, // a tenth for each
	}, now())
	r := 100 * allocator.Unit
	l.SetSchedule(now(), []enforce.Step{{Until: math.MaxInt64, Total: r, Classes: []allocator.Rate{r}}})
	start = start.Add(-2 * time.Second) // two seconds later
	return limit.NewSet(limit.Config{Limits: budgets{"origin": l}, Now: now})
}

func ExampleClass_Allow() {
	class, err := newSet().Class("origin", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(class.AllowN(60), class.AllowN(60))
	// Output: true false
}

func ExampleClass_Wait() {
	class, err := newSet().Class("origin", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 3 {
		if err := class.WaitN(ctx, 40); err != nil { // the third waits for its tokens
			fmt.Println(err)
		}
	}
	fmt.Println("done")
	// Output: done
}

func ExampleClass_Reserve() {
	class, err := newSet().Class("origin", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	r := class.Reserve(60)
	fmt.Println(r.OK(), class.Reserve(60).OK())
	r.Cancel()
	fmt.Println(class.Reserve(60).OK())
	// Output:
	// true false
	// true
}

func ExampleClass_For() {
	class, err := newSet().Class("origin", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	greedy, modest := class.For("greedy"), class.For("modest")
	admitted := 0
	for range 50 {
		if greedy.Allow() {
			admitted++
		}
	}
	fmt.Println("a few of fifty:", admitted < 15)
	fmt.Println(modest.Allow())
	// Output:
	// a few of fifty: true
	// true
}

// Names are looked up once, so a typing mistake shows while a program starts.
func ExampleSet_Class() {
	_, err := newSet().Class("origin", "works")
	fmt.Println(err)
	// Output: limit: no such budget or class: origin/works
}
