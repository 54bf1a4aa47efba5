package judge

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"subak/internal/config"
)

// percent writes a fraction, to a tenth of a percent.
func percent(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }

// part writes a percentage of the file.
func part(p config.Percent) string { return strings.TrimSuffix(p.String(), "%") + " %" }

func fraction(p config.Percent) float64 { return float64(p) / float64(config.Whole) }

// rate writes requests/s.
func rate(f float64) string { return count(int64(f+0.5)) + "/s" }

// count writes a whole number with its thousands apart.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// duration writes a time to three or four digits.
func duration(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// list joins names; many are counted.
func (j *judge) list(nodes []int) string {
	const most = 4
	if len(nodes) > most {
		return fmt.Sprintf("%s and %d more", j.list(nodes[:most-1]), len(nodes)-most+1)
	}
	names := make([]string, len(nodes))
	for k, i := range nodes {
		names[k] = j.r.Nodes[i]
	}
	return strings.Join(names, ", ")
}
