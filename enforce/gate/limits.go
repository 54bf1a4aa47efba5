package gate

import (
	"errors"
	"fmt"
	"time"

	"subak/enforce/tlsfiles"
)

// TLS names the files of a listener's certificate; they are watched, and a bad
// new set leaves the one of before in force.
type TLS = tlsfiles.Config

// Limits bound what the clients of one listener may hold of this process. In
// every field 0 means the default; where it says so, a negative value means no
// limit.
type Limits struct {
	// HeaderBytes is the size of a request's head at most. Default 64 KiB. A
	// larger one gets 431. Raising it costs that much per connection at worst.
	HeaderBytes int
	// BodyBytes is the size of a request's body at most; beyond it the answer is
	// 413. Default none: bodies are streamed, not held.
	BodyBytes int64
	// InFlight is the number of requests served at once, all protocols and
	// WebSockets included; beyond it the answer is 503 with Retry-After, nothing
	// is charged, and no demand is counted. Default none.
	InFlight int
	// Connections is the number of connections open at once; beyond it new ones
	// are closed as soon as they are accepted. Default none.
	Connections int
	// HeaderTimeout is the time within which a TLS handshake, and then a request's
	// head, must have arrived. Default 10 s.
	HeaderTimeout time.Duration
	// BodyStall is how long a request's body may bring nothing while it is waited
	// for. Default 30 s, negative for ever. Raising it lets a slow client hold a
	// backend's connection longer.
	BodyStall time.Duration
	// WriteStall is how long a client may take nothing of what is to be sent to
	// it, and how long a response may wait for egress. Default 30 s, negative for
	// ever.
	WriteStall time.Duration
	// IdleTimeout is how long a connection may wait for its next request. Default
	// 2 min.
	IdleTimeout time.Duration
}

// Defaults of Limits.
const (
	DefaultHeaderBytes   = 64 << 10
	DefaultHeaderTimeout = 10 * time.Second
	DefaultBodyStall     = 30 * time.Second
	DefaultWriteStall    = 30 * time.Second
	DefaultIdleTimeout   = 2 * time.Minute
)

// headerBytesMax is the largest HeaderBytes.
const headerBytesMax = 16 << 20

func (l Limits) validate() error {
	var errs []error
	if l.HeaderBytes < 0 || l.HeaderBytes > headerBytesMax {
		errs = append(errs, fmt.Errorf("limits.header_bytes: %d: want 1..%d", l.HeaderBytes, headerBytesMax))
	}
	if l.BodyBytes < 0 || l.InFlight < 0 || l.Connections < 0 {
		errs = append(errs, errors.New("limits: body_bytes, in_flight and connections must not be negative"))
	}
	if l.HeaderTimeout < 0 || l.IdleTimeout < 0 {
		errs = append(errs, errors.New("limits: header_timeout and idle_timeout must not be negative"))
	}
	return errors.Join(errs...)
}

// filled returns the limits with defaults in the place of zeros, and 0 in the
// place of "for ever".
func (l Limits) filled() Limits {
	if l.HeaderBytes == 0 {
		l.HeaderBytes = DefaultHeaderBytes
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&l.HeaderTimeout, DefaultHeaderTimeout}, {&l.BodyStall, DefaultBodyStall},
		{&l.WriteStall, DefaultWriteStall}, {&l.IdleTimeout, DefaultIdleTimeout},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
		*f.field = max(*f.field, 0)
	}
	return l
}

// Retry says how often a request is tried again at another backend, and only ever
// when no backend can have seen it: the connection was refused, or could not be
// made in time. What is tried again was admitted and charged once.
type Retry struct {
	// Attempts is how many more there are after the first: 0 means 1, negative
	// none, at most 10.
	Attempts int
}

const attemptsMax = 10

// more is Attempts without special values.
func (r Retry) more() int {
	if r.Attempts == 0 {
		return 1
	}
	return max(r.Attempts, 0)
}

// TenantSource says whom a request is from. The zero value means nobody in
// particular.
type TenantSource struct {
	// Header is the name of a field whose value names the tenant. It counts only
	// from TrustedPeers, where there are any: a client that may choose its tenant
	// gets a fresh share with each new name.
	Header string
	// Client takes the client's address, an IPv6 one by its /64.
	Client bool
}
