//go:build subak_portable

package enforce

import (
	"sync"
	"sync/atomic"
)

// procPin is as in core.go, by what a sync.Pool keeps for each processor: slower,
// and the numbers are not the lowest ones.
func procPin() int {
	n := numbers.Get().(*int)
	c := *n
	numbers.Put(n)
	return c
}

func procUnpin() {}

var (
	numbered atomic.Int64
	numbers  = sync.Pool{New: func() any {
		n := int(numbered.Add(1))
		return &n
	}}
)
