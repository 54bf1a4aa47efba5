package enforce

import (
	"sync"
	"testing"
	"time"
)

func TestTheTableOfRetriesIsMadeByTheFirstMarkOnce(t *testing.T) {
	table := newRetryTable(1 << 10)
	if table.marked(0, 1) || table.settle(0, 1) || table.words.Load() != nil {
		t.Error("looking made the table, or found something in none")
	}
	var all sync.WaitGroup
	for k := range uint64(8) {
		all.Go(func() { table.mark(0, (k+1)<<32|2*k, time.Minute) })
	}
	all.Wait()
	for k := range uint64(8) {
		if !table.marked(0, (k+1)<<32|2*k) {
			t.Errorf("mark %d is lost: it went into a table that another one replaced", k)
		}
	}
	if got := len(*table.words.Load()); got != 1<<10 {
		t.Errorf("%d words, want %d", got, 1<<10)
	}
}
