package main

import (
	"time"

	"subak/testbed/topology"
)

// delays returns the time one way between the regions, 282 ms there and back for
// the farthest pair; within a region it is a millisecond.
func delays() [][]time.Duration {
	d := topology.Scattered22().OneWay
	for i := range d {
		d[i][i] = time.Millisecond
	}
	return d
}
