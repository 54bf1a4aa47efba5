package envoy

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"subak/enforce"
	"subak/enforce/gate"
)

// Config describes one rate limit service. The zero value of every field but Name
// and, under gate.UnknownDefault, Default is usable.
type Config struct {
	// Name labels the service in metrics.
	Name string
	// Shadow decides and counts as usual and answers OK to everything.
	Shadow bool
	// OnUnknown says what happens to a descriptor of a domain that is not
	// listed, or that no rule of a domain without a class of its own matches:
	// charge Default, answer OVER_LIMIT, or let it through uncharged.
	OnUnknown gate.Unknown
	// Default is the target under gate.UnknownDefault. Its Tenant names
	// a descriptor key like a rule's.
	Default Target
	// Domains are looked up by name.
	Domains []Domain
	// Client is the descriptor key whose presence says that equal descriptors
	// come from one client, so that its retries of refused requests do not count
	// as demand (remote_address where a path or the like stands beside it).
	// "" counts every request: a descriptor often stands for many clients.
	Client string
	// Headers selects the quota fields that are added to responses.
	Headers gate.HeaderMode
	// QuietAdmitted leaves them off admitted requests.
	QuietAdmitted bool
	// QuietStatus leaves limit, rest and reset off the status of every
	// descriptor; its code stays.
	QuietStatus bool
	// NoBody leaves the problem document off refusals.
	NoBody bool
	// Metadata adds budget, class and reason of the decision as dynamic
	// metadata, for access logs. Clients do not see it.
	Metadata bool
	// RetryJitter adds up to this much at random to Retry-After. Whole seconds.
	RetryJitter time.Duration
}

// Domain is the rules of one rate limit domain.
type Domain struct {
	Name string
	// Budget is what its rules charge that name none.
	Budget string
	// Class is charged by descriptors that no rule matches; "" sends them the
	// way of OnUnknown. They are counted either way where there are rules.
	Class string
	// Rules are tried in order for each descriptor; the first that matches
	// decides.
	Rules []Rule
}

// Rule sends the descriptors that Match describes to a target.
type Rule struct {
	// Match maps descriptor keys to patterns, where * stands for any run of
	// characters; "" matches every value. The descriptor must have every key;
	// where it has one more than once, each of its values must match. It may
	// have other keys besides. An empty Match matches every descriptor.
	Match  map[string]string
	Budget string // "" means the domain's
	Class  string // "" means the domain's
	Cost   int64  // units for each hit, 1..enforce.MaxCost; 0 means 1
	Tenant string // descriptor key whose value names the tenant; "" means none
}

// Target is what descriptors are charged to.
type Target struct {
	Budget, Class string
	Cost          int64  // units for each hit; 0 means 1
	Tenant        string // descriptor key whose value names the tenant; "" means none

	at int // its place in Matcher.Targets
}

// Deps are what a service asks of the outside.
type Deps struct {
	Limits enforce.Limits
	// Missing, if set, is told of targets that Limits does not have, while the
	// service is made; what they match goes the way of OnUnknown, and a missing
	// default refuses. Nil makes them faults.
	Missing func(Target)
	// Now is the lease clock's reading.
	Now func() int64
	// Hash names a tenant by its value, with a secret seed and the same one at
	// every door of the node. nil means one of the service's own.
	Hash func(string) uint64
	// Rand returns random bits for jitter; nil means none. Called concurrently.
	Rand func() uint64
	// Log gets panics, with their stack; nil discards.
	Log *slog.Logger
}

// Validate returns every fault of the configuration that does not depend on the
// limiters.
func (c Config) Validate() error {
	_, err := NewMatcher(c)
	return err
}

// validate adds the faults that NewMatcher does not meet on its way.
func (c Config) validate() error {
	var errs []error
	if c.Headers > gate.HeadersOff || c.OnUnknown > gate.UnknownAllow {
		errs = append(errs, errors.New("headers or on_unknown: no such choice"))
	}
	if c.RetryJitter < 0 {
		errs = append(errs, fmt.Errorf("retry_jitter: %v is negative", c.RetryJitter))
	}
	return errors.Join(errs...)
}
