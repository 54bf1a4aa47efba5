//go:build subak_portable

package enforce

import (
	"sync"
	"sync/atomic"
)

// core is as in core.go, by what a sync.Pool keeps for each processor: slower, and
// the numbers are not the lowest ones.
func core() int {
	n := numbers.Get().(*int)
	c := *n
	numbers.Put(n)
	return c
}

var (
	numbered atomic.Int64
	numbers  = sync.Pool{New: func() any {
		n := int(numbered.Add(1))
		return &n
	}}
)
