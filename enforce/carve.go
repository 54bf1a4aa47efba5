package enforce

import "subak/allocator"

// Hold is what other data planes may spend of a class until an instant.
type Hold struct {
	Until int64 // lease clock
	Rate  allocator.Rate
}

// Carve replaces what other data planes hold of a class by profile.
func (l *Limiter) Carve(now int64, class int, profile []Hold) bool { return false }

// Carvable returns the rate of a class that could be carved until an instant.
func (l *Limiter) Carvable(now int64, class int, until int64) allocator.Rate { return 0 }

// Carved fills dst with what is carved out of each class now and returns the sum.
func (l *Limiter) Carved(now int64, dst []allocator.Rate) allocator.Rate { return 0 }

// Report counts demand that another data plane met.
func (l *Limiter) Report(class int, admitted, refused int64) {}
