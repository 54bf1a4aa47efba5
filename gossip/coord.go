package gossip

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/serf/coordinate"
)

// The payload of a ping's answer is our Vivaldi coordinate in fixed form:
// version(1), then big-endian float64: 8 dimensions, error, adjustment, height.
// Later versions may append. Units are seconds, as in serf.
const (
	coordVersion = 1
	coordDims    = 8
	coordFloats  = coordDims + 3
	coordBytes   = 1 + 8*coordFloats
	// maxCoord bounds each component: 10 s is also serf's bound for a round trip.
	maxCoord = 10.0
	// maxRTT is the longest round trip believed.
	maxRTT = 10 * time.Second
)

func encodeCoord(c *coordinate.Coordinate) []byte {
	b := make([]byte, 0, coordBytes)
	b = append(b, coordVersion)
	for _, v := range c.Vec {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	}
	for _, v := range [3]float64{c.Error, c.Adjustment, c.Height} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// parseCoord reads foreign bytes; whatever it returns is finite, bounded and of
// the right dimension, so that serf's arithmetic cannot panic on it.
func parseCoord(b []byte) (*coordinate.Coordinate, error) {
	if len(b) < coordBytes {
		return nil, fmt.Errorf("coordinate: %d bytes, want %d", len(b), coordBytes)
	}
	if b[0] < coordVersion {
		return nil, fmt.Errorf("coordinate: version %d", b[0])
	}
	var v [coordFloats]float64
	for i := range v {
		v[i] = math.Float64frombits(binary.BigEndian.Uint64(b[1+8*i:]))
		if !(math.Abs(v[i]) <= maxCoord) { // also refuses NaN
			return nil, fmt.Errorf("coordinate: component %d out of range", i)
		}
	}
	c := &coordinate.Coordinate{Vec: v[:coordDims], Error: v[coordDims], Adjustment: v[coordDims+1], Height: v[coordDims+2]}
	if c.Error < 0 || c.Height < 0 {
		return nil, fmt.Errorf("coordinate: negative error or height")
	}
	return c, nil
}
