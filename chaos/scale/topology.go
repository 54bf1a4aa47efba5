package main

import (
	"math"
	"time"
)

// place is a site, in degrees north and east.
type place struct{ north, east float64 }

// places are 22 cities whose farthest pair is 282 ms apart, there and back.
func places() []place {
	return []place{
		{52.37, 4.90}, {39.04, -77.49}, {25.76, -80.19}, {43.65, -79.38}, {41.88, -87.63}, {32.78, -96.80},
		{25.20, 55.27}, {50.11, 8.68}, {22.32, 114.17}, {-26.20, 28.05}, {6.52, 3.38}, {-33.45, -70.67},
		{51.51, -0.13}, {34.05, -118.24}, {40.42, -3.70}, {19.08, 72.88}, {-23.55, -46.63}, {47.61, -122.33},
		{1.35, 103.82}, {59.33, 18.07}, {-33.87, 151.21}, {35.68, 139.69},
	}
}

// maxRTT is the round trip of the farthest two places.
const maxRTT = 282 * time.Millisecond

// delays returns the time one way between the regions: in proportion to the
// great-circle distance, with half a millisecond at either end.
func delays() [][]time.Duration {
	p := places()
	d := make([][]time.Duration, len(p))
	longest := 0.0
	for i := range p {
		for j := range p {
			longest = max(longest, distance(p[i], p[j]))
		}
	}
	for i := range p {
		d[i] = make([]time.Duration, len(p))
		for j := range p {
			d[i][j] = time.Duration(distance(p[i], p[j])/longest*float64(maxRTT/2-time.Millisecond)) + time.Millisecond
		}
	}
	return d
}

// distance is the angle between two places.
func distance(a, b place) float64 {
	rad := math.Pi / 180
	c := math.Sin(a.north*rad)*math.Sin(b.north*rad) + math.Cos(a.north*rad)*math.Cos(b.north*rad)*math.Cos((a.east-b.east)*rad)
	return math.Acos(max(-1, min(1, c)))
}
