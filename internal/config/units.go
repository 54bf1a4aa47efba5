package config

import (
	"fmt"
	"math/big"
	"strings"

	"subak/allocator"
	"subak/enforce"
	"subak/internal/strict"
)

// Unit says what a budget counts.
type Unit string

// The two units. Costs of requests are whole requests or whole bytes.
const (
	Requests Unit = "/s"
	Bytes    Unit = "B/s"
)

// MaxRate is the largest rate a field may hold, 10^11 units per second: what a
// bucket can enforce. It leaves sums over nodes and classes far below the
// integers' end.
const MaxRate = enforce.MaxRate

// Amount is a rate with the unit it was written in, such as 20000/s or 5MB/s.
type Amount struct {
	Rate allocator.Rate // micro-units per second, 0 to MaxRate
	Unit Unit
}

const (
	rateMend    = "write a number and a unit, such as 20000/s, 1.2k/s, 600/min, 0.3/s, 5MB/s or 100Mbit/s"
	percentMend = "write a percentage such as 70% or 0.5%"
)

// prefix returns the multiplier before the unit.
func prefix(word string) (scale int64, ok bool) {
	switch word {
	case "":
		return 1, true
	case "k", "K":
		return 1e3, true
	case "M":
		return 1e6, true
	case "G":
		return 1e9, true
	case "T":
		return 1e12, true
	case "Ki":
		return 1 << 10, true
	case "Mi":
		return 1 << 20, true
	case "Gi":
		return 1 << 30, true
	case "Ti":
		return 1 << 40, true
	}
	return 0, false
}

// periodSeconds returns the seconds named after the stroke.
func periodSeconds(word string) (seconds int64, ok bool) {
	switch word {
	case "s", "sec":
		return 1, true
	case "min", "m":
		return 60, true
	case "h":
		return 3600, true
	case "d":
		return 86400, true
	}
	return 0, false
}

// ParseAmount reads a rate exactly. Per-minute and longer periods that do not
// come out even in micro-units are rounded down, so that a limit is never
// exceeded; a finer fraction of a second than a micro-unit is refused.
func ParseAmount(s string) (Amount, error) {
	bad := func(what string) (Amount, error) { return Amount{}, strict.Wrong(what, rateMend) }
	left, per, ok := strings.Cut(s, "/")
	if !ok {
		return bad(fmt.Sprintf("%q has no unit", s))
	}
	period, ok := periodSeconds(strings.TrimSpace(per))
	if !ok {
		return bad(fmt.Sprintf("%q is per an unknown time %q", s, strings.TrimSpace(per)))
	}
	mantissa, decimals, word, ok := cutNumber(strings.TrimSpace(left))
	if !ok {
		return bad(fmt.Sprintf("%q does not start with a plain decimal number", s))
	}
	unit, scale, divisor, err := unitOf(word, s)
	if err != nil {
		return Amount{}, err
	}
	n := new(big.Int).Mul(mantissa, big.NewInt(scale))
	n.Mul(n, big.NewInt(int64(allocator.Unit)))
	n, rest := n.QuoRem(n, new(big.Int).Mul(pow10(decimals), big.NewInt(period*divisor)), new(big.Int))
	if rest.Sign() != 0 && period == 1 || n.Sign() == 0 && mantissa.Sign() != 0 {
		return bad(fmt.Sprintf("%q is finer than a millionth per second", s))
	}
	if n.Cmp(big.NewInt(int64(MaxRate))) > 0 {
		return Amount{}, strict.Wrong(fmt.Sprintf("%q is above the largest rate, 10^11 per second", s), "write a smaller rate")
	}
	return Amount{allocator.Rate(n.Int64()), unit}, nil
}

// unitOf reads the prefix and unit between number and stroke. The rate is the
// number times scale over divisor.
func unitOf(word, whole string) (unit Unit, scale, divisor int64, err error) {
	unit, divisor = Requests, 1
	switch {
	case strings.HasSuffix(word, "bit"):
		unit, divisor, word = Bytes, 8, strings.TrimSuffix(word, "bit")
	case strings.HasSuffix(word, "B"):
		unit, word = Bytes, strings.TrimSuffix(word, "B")
	case strings.HasSuffix(word, "req"):
		word = strings.TrimSuffix(word, "req")
	case strings.HasSuffix(word, "b"):
		return "", 0, 0, strict.Wrong(fmt.Sprintf("%q may mean bits or bytes", whole), "write Mbit/s for bits or MB/s for bytes")
	}
	scale, ok := prefix(strings.TrimSpace(word))
	if !ok {
		return "", 0, 0, strict.Wrong(fmt.Sprintf("%q has an unknown unit %q", whole, word), rateMend)
	}
	return unit, scale, divisor, nil
}

// maxDigits bounds the work on one number.
const maxDigits = 30

// cutNumber splits s into a decimal number, as mantissa and count of decimals,
// and the text behind it. It takes no sign, exponent or separator.
func cutNumber(s string) (mantissa *big.Int, decimals int, rest string, ok bool) {
	end, point := 0, -1
	for ; end < len(s); end++ {
		if s[end] == '.' && point < 0 {
			point = end
		} else if s[end] < '0' || s[end] > '9' {
			break
		}
	}
	number := s[:end]
	if end == 0 || end > maxDigits || point == 0 || point == end-1 {
		return nil, 0, "", false
	}
	if point > 0 {
		decimals = end - 1 - point
		number = number[:point] + number[point+1:]
	}
	mantissa, ok = new(big.Int).SetString(number, 10)
	return mantissa, decimals, strings.TrimSpace(s[end:]), ok
}

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// String writes the amount so that [ParseAmount] reads the same value back.
func (a Amount) String() string {
	if a.Unit != Bytes {
		return decimal(int64(a.Rate), 6) + "/s"
	}
	prefix, digits := "", 6
	for _, p := range []struct {
		name   string
		digits int
	}{{"k", 9}, {"M", 12}, {"G", 15}, {"T", 18}} {
		if big.NewInt(int64(a.Rate)).Cmp(pow10(p.digits)) >= 0 {
			prefix, digits = p.name, p.digits
		}
	}
	return decimal(int64(a.Rate), digits) + prefix + "B/s"
}

// decimal writes n/10^digits without trailing zeros.
func decimal(n int64, digits int) string {
	s := fmt.Sprintf("%0*d", digits+1, n)
	whole, fraction := s[:len(s)-digits], strings.TrimRight(s[len(s)-digits:], "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// MarshalText is String, for printing the configuration.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is ParseAmount.
func (a *Amount) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAmount(string(text))
	return err
}

// Percent is a share in parts per million: 70% is 700,000. Unlimited, which
// only a few fields take, is written "unlimited".
type Percent int64

// Whole is 100%.
const Whole Percent = 1_000_000

// Unlimited is the value of a borrow limit that does not bind.
const Unlimited Percent = -1

// ParsePercent reads a percentage exactly, to 0.0001%, up to 100000%.
func ParsePercent(s string) (Percent, error) {
	if s == "unlimited" {
		return Unlimited, nil
	}
	mantissa, decimals, rest, ok := cutNumber(strings.TrimSpace(s))
	switch {
	case !ok:
		return 0, strict.Wrong(fmt.Sprintf("%q is no percentage", s), percentMend)
	case rest != "%":
		return 0, strict.Wrong(fmt.Sprintf("%q has no %% sign", s), percentMend)
	}
	n, finer := new(big.Int).QuoRem(mantissa.Mul(mantissa, big.NewInt(10_000)), pow10(decimals), new(big.Int))
	if finer.Sign() != 0 {
		return 0, strict.Wrong(fmt.Sprintf("%q is finer than 0.0001%%", s), "round it to four decimals")
	}
	if n.Cmp(big.NewInt(1000*int64(Whole))) > 0 {
		return 0, strict.Wrong(fmt.Sprintf("%q is above 100000%%", s), percentMend)
	}
	return Percent(n.Int64()), nil
}

// String writes the percentage so that [ParsePercent] reads it back.
func (p Percent) String() string {
	if p < 0 {
		return "unlimited"
	}
	return decimal(int64(p), 4) + "%"
}

// MarshalText is String.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is ParsePercent.
func (p *Percent) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePercent(string(text))
	return err
}

// Portion is a part of a budget, written as a percentage or as a rate.
type Portion struct {
	Amount  Amount  // when IsRate
	Percent Percent // otherwise
	IsRate  bool
}

// MarshalText writes whichever form was given.
func (p Portion) MarshalText() ([]byte, error) {
	if p.IsRate {
		return p.Amount.MarshalText()
	}
	return p.Percent.MarshalText()
}

// UnmarshalText reads a percentage or a rate.
func (p *Portion) UnmarshalText(text []byte) (err error) {
	s := string(text)
	if strings.Contains(s, "/") {
		*p = Portion{IsRate: true}
		p.Amount, err = ParseAmount(s)
		return err
	}
	*p = Portion{}
	if p.Percent, err = ParsePercent(s); err != nil || p.Percent < 0 {
		return strict.Wrong(fmt.Sprintf("%q is neither a percentage nor a rate", s), "write a percentage such as 60% or a rate such as 12000/s")
	}
	return nil
}

// Size is a count of bytes, such as 64KB.
type Size int64

const maxSize = 1 << 50

// ParseSize reads a whole count of bytes: 0B, 64KB, 10MiB.
func ParseSize(s string) (Size, error) {
	mend := "write a number and a unit, such as 64KB, 10MB, 1MiB or 0B"
	mantissa, decimals, word, ok := cutNumber(strings.TrimSpace(s))
	word, isBytes := strings.CutSuffix(word, "B")
	switch {
	case !ok:
		return 0, strict.Wrong(fmt.Sprintf("%q is no size", s), mend)
	case !isBytes:
		return 0, strict.Wrong(fmt.Sprintf("%q has no unit of bytes", s), mend)
	}
	scale, ok := prefix(strings.TrimSpace(word))
	if !ok {
		return 0, strict.Wrong(fmt.Sprintf("%q has an unknown unit %q", s, word+"B"), mend)
	}
	n, rest := new(big.Int).QuoRem(mantissa.Mul(mantissa, big.NewInt(scale)), pow10(decimals), new(big.Int))
	switch {
	case rest.Sign() != 0:
		return 0, strict.Wrong(fmt.Sprintf("%q is no whole count of bytes", s), mend)
	case n.Cmp(big.NewInt(maxSize)) > 0:
		return 0, strict.Wrong(fmt.Sprintf("%q is above the largest size, 1024 TiB", s), "write a smaller one")
	}
	return Size(n.Int64()), nil
}

// String writes the size so that [ParseSize] reads the same value back.
func (s Size) String() string {
	scale, prefixes := int64(1000), []string{"k", "M", "G", "T"}
	if s%1024 == 0 {
		scale, prefixes = 1024, []string{"Ki", "Mi", "Gi", "Ti"}
	}
	n, prefix := int64(s), ""
	for _, p := range prefixes {
		if n == 0 || n%scale != 0 {
			break
		}
		n, prefix = n/scale, p
	}
	return fmt.Sprintf("%d%sB", n, prefix)
}

// MarshalText is String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSize.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}
