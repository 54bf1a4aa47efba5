package strict

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// ValueError is a text that is no value of its field's type.
type ValueError struct {
	What string // such as: "5" has no unit
	Mend string // such as: write 5s
}

// Wrong makes such an error.
func Wrong(what, mend string) error { return &ValueError{What: what, Mend: mend} }

// Error says both.
func (e *ValueError) Error() string { return e.What + "; mend: " + e.Mend }

// ParseDuration is time.ParseDuration with our words for the mistakes.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err == nil {
		return d, nil
	}
	mend := "write a time with its unit, such as 200ms, 3s or 1m30s"
	if isNumber(strings.TrimSpace(s)) {
		return 0, &ValueError{fmt.Sprintf("%q has no unit", s), fmt.Sprintf("write %sms, %ss or %sm", s, s, s)}
	}
	return 0, &ValueError{fmt.Sprintf("%q is no time", s), mend}
}

// isNumber reports whether s is digits with at most one point among them.
func isNumber(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return digits(whole) && (!point || digits(fraction))
}

// ParseAddrPort reads IP:PORT; names are refused because an address to listen
// on must not depend on a resolver.
func ParseAddrPort(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err == nil {
		return a, nil
	}
	mend := "write an IP address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080"
	if port, ok := strings.CutPrefix(s, ":"); ok {
		mend = fmt.Sprintf("write 0.0.0.0:%s for every address, or 127.0.0.1:%s", port, port)
	} else if port, ok := strings.CutPrefix(s, "localhost:"); ok {
		mend = "write 127.0.0.1:" + port
	}
	return netip.AddrPort{}, &ValueError{fmt.Sprintf("%q is no IP address with a port", s), mend}
}
