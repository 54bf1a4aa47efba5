package config

import (
	"fmt"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Bounds of listeners[].limits and .retry.
const (
	minHeaderBytes = 1 << 10
	maxHeaderBytes = 16 << 20
	maxCount       = 1_000_000_000
	minStall       = 100 * time.Millisecond
	maxStall       = 24 * time.Hour
	maxHeaderTime  = time.Hour
	minIdle        = time.Second
	maxAttempts    = 10
)

// tls checks what can be said without reading the files.
func (k *checker) tls(path string, t *TLS) {
	switch {
	case t.CertFile == "" && (t.KeyFile != "" || t.ClientCAFile != ""):
		k.Fault(path+".cert_file", "is missing", "name the PEM file of the certificate, or remove tls")
	case t.CertFile != "" && t.KeyFile == "":
		k.Fault(path+".key_file", "is missing", "name the PEM file of the certificate's private key")
	}
}

func (k *checker) limits(path string, l *Limits) {
	if l.HeaderBytes < minHeaderBytes || l.HeaderBytes > maxHeaderBytes {
		k.Fault(path+".header_bytes", fmt.Sprintf("%v is not between 1KiB and 16MiB", l.HeaderBytes), "write 64KiB")
	}
	count := func(field string, n int) {
		if n < 0 || n > maxCount {
			k.Fault(path+"."+field, fmt.Sprintf("%d is not between 0 and 1,000,000,000", n), "write 0 for no limit")
		}
	}
	count("in_flight", l.InFlight)
	count("connections", l.Connections)
	if l.HeaderTimeout < minStall || l.HeaderTimeout > maxHeaderTime {
		k.Fault(path+".header_timeout", fmt.Sprintf("%v is not between %v and %v", l.HeaderTimeout, minStall, maxHeaderTime), "write 10s")
	}
	stall := func(field string, d time.Duration) {
		if d != 0 && d < minStall || d > maxStall {
			k.Fault(path+"."+field, fmt.Sprintf("%v is neither 0s nor between %v and %v", d, minStall, maxStall), "write 30s, or 0s to wait for ever")
		}
	}
	stall("body_stall", l.BodyStall)
	stall("write_stall", l.WriteStall)
	if l.IdleTimeout < minIdle || l.IdleTimeout > maxStall {
		k.Fault(path+".idle_timeout", fmt.Sprintf("%v is not between %v and %v", l.IdleTimeout, minIdle, maxStall), "write 2m")
	}
}

func (k *checker) retry(path string, r *Retry) {
	if r.Attempts < 0 || r.Attempts > maxAttempts {
		k.Fault(path+".attempts", fmt.Sprintf("%d is not between 0 and %d", r.Attempts, maxAttempts), "write 1, or 0 for none")
	}
}

func (k *checker) tenant(path string, t *TenantSource) {
	const mend = "write {header: X-Api-Key} or {client: true}"
	switch {
	case t == nil:
	case t.Header != "" && t.Client:
		k.Fault(path, "names a header and the client's address", "keep one of the two")
	case t.Header == "" && !t.Client:
		k.Fault(path, "names nobody", mend)
	case t.Header != "" && !httpguts.ValidHeaderFieldName(t.Header):
		k.Fault(path+".header", fmt.Sprintf("%q is no name of a header", t.Header), mend)
	}
}

// egress checks what the bodies of answers are paced by.
func (k *checker) egress(path string, t *Target) {
	if t == nil {
		return
	}
	k.target(path, t.Budget, t.Class)
	for i := range k.c.Budgets {
		b := &k.c.Budgets[i]
		if b.Name == t.Budget && b.Limit.Unit == Requests {
			k.Fault(path+".budget", fmt.Sprintf("%s is in requests: answers are paced by bytes", t.Budget), "name a budget whose limit is in bytes, such as 5MB/s")
		}
	}
}

// budget returns the budget of a name, nil if there is none.
func (c *Config) budget(name string) *Budget {
	for i := range c.Budgets {
		if c.Budgets[i].Name == name {
			return &c.Budgets[i]
		}
	}
	return nil
}
