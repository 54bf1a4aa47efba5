package timed

import (
	"math"
	"time"
)

// city is a place with a point of presence: degrees north and east.
type city struct {
	name        string
	north, east float64
}

// cities returns the 22 places of the wide-area topology.
func cities() []city {
	return []city{
		{"amsterdam", 52.37, 4.90}, {"ashburn", 39.04, -77.49}, {"miami", 25.76, -80.19}, {"toronto", 43.65, -79.38},
		{"chicago", 41.88, -87.63}, {"dallas", 32.78, -96.80}, {"dubai", 25.20, 55.27}, {"frankfurt", 50.11, 8.68},
		{"hongkong", 22.32, 114.17}, {"johannesburg", -26.20, 28.05}, {"lagos", 6.52, 3.38}, {"santiago", -33.45, -70.67},
		{"london", 51.51, -0.13}, {"losangeles", 34.05, -118.24}, {"madrid", 40.42, -3.70}, {"mumbai", 19.08, 72.88},
		{"saopaulo", -23.55, -46.63}, {"seattle", 47.61, -122.33}, {"singapore", 1.35, 103.82}, {"stockholm", 59.33, 18.07},
		{"sydney", -33.87, 151.21}, {"tokyo", 35.68, 139.69},
	}
}

// kilometres is the great-circle distance (haversine, mean radius of the Earth).
func kilometres(a, b city) float64 {
	const radius, degree = 6371, math.Pi / 180
	half := func(x float64) float64 { s := math.Sin(x / 2); return s * s }
	h := half((a.north-b.north)*degree) + math.Cos(a.north*degree)*math.Cos(b.north*degree)*half((a.east-b.east)*degree)
	return 2 * radius * math.Asin(math.Sqrt(h))
}

// cityDelay is the time one way: light in fibre does 200 km per ms, and cables
// are half as long again as the great circle. The ms on top is for the last mile.
func cityDelay(a, b city) time.Duration {
	us := math.Round(kilometres(a, b) * 1.5 / 200 * 1000)
	return time.Duration(us)*time.Microsecond + time.Millisecond
}

// cityDelays is the matrix of delays for n nodes; more than one node of a city
// have 0.3 ms between them.
func cityDelays(n int) [][]int64 {
	all := cities()
	return matrix(n, func(i, j int) int64 {
		a, b := all[i%len(all)], all[j%len(all)]
		if a == b {
			return int64(300 * time.Microsecond)
		}
		return int64(cityDelay(a, b))
	})
}

// matrix is what delay says for all ordered pairs of n nodes.
func matrix(n int, delay func(i, j int) int64) [][]int64 {
	m := make([][]int64, n)
	for i := range m {
		m[i] = make([]int64, n)
		for j := range m[i] {
			if i != j {
				m[i][j] = delay(i, j)
			}
		}
	}
	return m
}

// longest is the greatest round trip of a matrix of delays.
func longest(m [][]int64) (rtt time.Duration) {
	for i := range m {
		for j := range m {
			rtt = max(rtt, time.Duration(m[i][j]+m[j][i]))
		}
	}
	return rtt
}
