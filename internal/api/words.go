package api

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
)

// RateWords writes a rate in a budget's unit to about four digits.
func RateWords(x float64, unit string) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "?"
	case x < 0:
		return "-"
	case unit == "B/s" && x >= 1:
		return humanize.SIWithDigits(x, 2, unit)
	case unit == "B/s":
		return NumberWords(x) + " B/s"
	}
	return NumberWords(x) + "/s"
}

// NumberWords writes x >= 0 with as many decimals as matter.
func NumberWords(x float64) string {
	switch {
	case x >= 1e15:
		return fmt.Sprintf("%.3g", x)
	case x >= 100 || x == math.Trunc(x):
		return humanize.Comma(int64(math.Round(x)))
	case x >= 1:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
	case x < 0.001 && x > 0: // a demand that dies away by halves
		return "<0.001"
	}
	return fmt.Sprintf("%.3g", x)
}
