package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"subak/internal/api"
)

// askTimeout bounds the question to one node: a paused one does not answer.
const askTimeout = 2 * time.Second

// reply is what one node said.
type reply struct {
	status api.Status
	err    error
}

// ask asks all nodes at once.
func ask(ctx context.Context, names []string) map[string]reply {
	replies := make([]reply, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			c, err := api.NewClient(api.ClientConfig{Address: at(name, adminPort), Timeout: askTimeout})
			if err != nil {
				replies[i].err = err
				return
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			replies[i].status, replies[i].err = c.Status(ctx)
		})
	}
	wg.Wait()
	all := map[string]reply{}
	for i, name := range names {
		all[name] = replies[i]
	}
	return all
}

// sees lists the nodes that a node counts on, itself included, by name.
func sees(s *api.Status) []string {
	names := []string{s.Node}
	for _, m := range s.Members {
		if m.Live && !m.Self {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

func admitted(s *api.Status) (n uint64) {
	for _, b := range s.Budgets {
		for _, c := range b.Classes {
			n += c.Admitted
		}
	}
	return n
}

// printStatus prints one line for each node.
func printStatus(ctx context.Context, s *scene) error {
	replies := ask(ctx, s.names())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tREADY\tSEES\tVIEWS\tDEMAND\tSHARE\tLENT\tBORROWED\tWHY")
	sum := 0.0
	for _, name := range s.names() {
		r := replies[name]
		if r.err != nil {
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\t-\t%v\n", name, r.err)
			continue
		}
		b := r.status.Budgets[0]
		demand := 0.0
		for _, c := range b.Classes {
			demand += c.Demand
		}
		sum += b.Share
		why := r.status.Reason
		for _, a := range r.status.Alarms {
			why += fmt.Sprintf("; alarm %s", a.Kind)
		}
		fmt.Fprintf(w, "%s\t%t\t%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%s\n", name, r.status.Ready,
			strings.Join(sees(&r.status), ","), r.status.Digests, demand, b.Share, b.Lent, b.Borrow, why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("shares add up to %.0f of %d/s\n", sum, s.limit)
	return nil
}

// waiting is the await command.
type waiting struct {
	groups  string
	serving bool
	timeout time.Duration
}

// split reads a,b/c,d; "" is everybody. Every name must be a node's.
func split(text string, names []string) ([][]string, error) {
	if text == "" {
		return [][]string{slices.Sorted(slices.Values(names))}, nil
	}
	var groups [][]string
	for _, part := range strings.Split(text, "/") {
		group := strings.Split(part, ",")
		for _, name := range group {
			if !slices.Contains(names, name) {
				return nil, fmt.Errorf("%q is no node; the nodes are %s", name, strings.Join(names, " "))
			}
		}
		slices.Sort(group)
		groups = append(groups, group)
	}
	return groups, nil
}

func (a *waiting) run(ctx context.Context, s *scene) error {
	groups, err := split(a.groups, s.names())
	if err != nil {
		return err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	var before map[string]reply
	var faults []string
	for {
		now := ask(ctx, slices.Concat(groups...))
		if ctx.Err() == nil {
			if faults = unsettled(groups, now, before, a.serving); len(faults) == 0 {
				fmt.Printf("so it is, after %.1f s\n", time.Since(start).Seconds())
				return nil
			}
			before = now
		}
		select {
		case <-ctx.Done():
			fmt.Printf("not so within %s: %s\n", a.timeout, strings.Join(faults, "; "))
			return answer(exitNo)
		case <-ticker.C:
		}
	}
}

// unsettled says why the nodes are not ready and in these groups; before is the
// poll before this one, by which a node that serves has moved on.
func unsettled(groups [][]string, now, before map[string]reply, serving bool) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, group := range groups {
		for _, name := range group {
			r := now[name]
			if r.err != nil {
				fault("%v", r.err)
				continue
			}
			if !r.status.Ready {
				fault("%s is not ready: %s", name, r.status.Reason)
			}
			if got := sees(&r.status); !slices.Equal(got, group) {
				fault("%s sees %s, not %s", name, strings.Join(got, ","), strings.Join(group, ","))
			}
			b, ok := before[name]
			if serving && (!ok || b.err != nil || admitted(&r.status) <= admitted(&b.status)) {
				fault("%s admits nothing", name)
			}
		}
	}
	return faults
}
