package envoy

import (
	"strconv"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"subak/enforce/answer"
	"subak/enforce/gate"
)

const (
	codeOK     = uint64(ratelimitv3.RateLimitResponse_OK)
	codeOver   = uint64(ratelimitv3.RateLimitResponse_OVER_LIMIT)
	unitSecond = uint64(ratelimitv3.RateLimitResponse_RateLimit_SECOND)
)

// write writes the response to a judged call.
func (s *Service) write(c *call, ok bool) {
	fields := s.cfg.Headers != gate.HeadersOff && !(ok && s.cfg.QuietAdmitted)
	if ok {
		for i := range c.judged {
			c.judged[i].ok = true // in shadow mode it need not be
		}
	}
	if !s.cfg.QuietStatus || fields || !ok {
		c.measure()
	}
	o := &c.out
	o.varint(responseCode, code(ok))
	for i := range c.judged[:c.count] {
		at := o.begin(responseStatuses)
		s.writeStatus(o, &c.judged[i])
		o.end(at)
	}
	secs := int64(0)
	if !ok {
		secs = s.writeRetry(c)
	}
	if fields {
		s.writeFields(c)
	}
	decisive := c.decisive()
	if !ok && !s.cfg.NoBody && decisive.class != nil && secs > 0 {
		o.header("content-type", "application/problem+json")
		o.header("cache-control", "no-store")
		o.bytes(responseBody, decisive.class.document)
	}
	if s.cfg.Metadata {
		s.writeMetadata(o, decisive)
	}
}

// writeUnread refuses a call with too many descriptors to judge.
func (s *Service) writeUnread(c *call) {
	c.out.varint(responseCode, code(s.cfg.Shadow))
	for range c.count {
		at := c.out.begin(responseStatuses)
		c.out.varint(statusCode, code(s.cfg.Shadow))
		c.out.end(at)
	}
}

func code(ok bool) uint64 {
	if ok {
		return codeOK
	}
	return codeOver
}

// measure reads the state of every class that the answer tells of.
func (c *call) measure() {
	for i := range c.judged {
		j := &c.judged[i]
		if j.class == nil {
			continue
		}
		if before := c.sameClass(i); before != nil {
			j.quota = before.quota
		} else {
			j.quota = j.class.limiter.Quota(c.now, j.class.index)
		}
		if !j.ok {
			j.wait = j.class.limiter.RetryAfterRequest(c.now, c.charges[j.charge].Request)
		}
	}
}

// sameClass returns an earlier descriptor of the class of descriptor i, or nil.
func (c *call) sameClass(i int) *judged {
	for k := range i {
		if c.judged[k].class == c.judged[i].class {
			return &c.judged[k]
		}
	}
	return nil
}

// decisive is the descriptor that the answer is for: of those refused the one that
// takes longest, else the one with the fewest tokens left.
func (c *call) decisive() *judged {
	d := &c.judged[0]
	for i := range c.judged {
		j := &c.judged[i]
		switch {
		case j.ok != d.ok:
			if d.ok {
				d = j
			}
		case !j.ok && j.wait > d.wait, j.ok && j.class != nil && (d.class == nil || j.quota.Tokens < d.quota.Tokens):
			d = j
		}
	}
	return d
}

// left and reset are what a class tells: nothing remains for a refused request,
// whatever there is.
func (j *judged) left() int64 {
	if !j.ok {
		return 0
	}
	return j.quota.Tokens
}

func (j *judged) reset() time.Duration {
	if !j.ok {
		return j.wait
	}
	return j.quota.Full
}

// writeStatus writes a DescriptorStatus. The limit is what the gate's fields call
// q and w: so many units, earned in so many seconds.
func (s *Service) writeStatus(o *out, j *judged) {
	o.varint(statusCode, code(j.ok))
	if j.class == nil || s.cfg.QuietStatus {
		return
	}
	at := o.begin(statusLimit)
	o.varint(limitRequests, clamp32(j.quota.Cap))
	o.varint(limitUnit, unitSecond)
	o.string(limitName, j.class.label)
	if w := answer.Window(j.quota); w > 1 {
		at := o.begin(limitMultiplier)
		o.varint(wrapperValue, clamp32(w))
		o.end(at)
	}
	o.end(at)
	if n := clamp32(j.left()); n > 0 {
		o.varint(statusRemaining, n)
	}
	at = o.begin(statusReset)
	if d := j.reset(); d > 0 {
		if secs := uint64(d / time.Second); secs > 0 {
			o.varint(durationSeconds, secs)
		}
		if ns := uint64(d % time.Second); ns > 0 {
			o.varint(durationNanos, ns)
		}
	}
	o.end(at)
}

// writeRetry tells when the whole call could pass, in whole seconds; nothing where
// a descriptor is denied for good. It returns what it told.
func (s *Service) writeRetry(c *call) int64 {
	secs := int64(0)
	for i := range c.judged {
		if j := &c.judged[i]; !j.ok {
			if j.class == nil {
				return 0
			}
			secs = max(secs, answer.Seconds(j.wait))
		}
	}
	if j := uint64(s.cfg.RetryJitter / time.Second); j > 0 && s.deps.Rand != nil {
		secs += int64(s.deps.Rand() % (j + 1))
	}
	var b [20]byte
	c.out.headerBytes("retry-after", strconv.AppendInt(b[:0], secs, 10))
	return secs
}

// writeFields writes the quota fields: of every class in the IETF's lists, of the
// decisive one in the older triples.
func (s *Service) writeFields(c *call) {
	switch s.cfg.Headers {
	case gate.HeadersDraft03:
		c.triple("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")
	case gate.HeadersX:
		c.triple("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
	default:
		c.list("ratelimit-policy", ";q=", ";w=", func(j *judged) (int64, int64) { return j.quota.Cap, answer.Window(j.quota) })
		c.list("ratelimit", ";r=", ";t=", func(j *judged) (int64, int64) { return j.left(), answer.Seconds(j.reset()) })
	}
}

func (c *call) triple(limit, remaining, reset string) {
	d := c.decisive()
	if d.class == nil {
		return
	}
	var b [20]byte
	c.out.headerBytes(limit, strconv.AppendInt(b[:0], d.quota.Cap, 10))
	c.out.headerBytes(remaining, strconv.AppendInt(b[:0], d.left(), 10))
	c.out.headerBytes(reset, strconv.AppendInt(b[:0], answer.Seconds(d.reset()), 10))
}

// list writes one header with an entry for each class: of what is refused in it,
// if anything is.
func (c *call) list(name, first, second string, of func(*judged) (int64, int64)) {
	o := &c.out
	start := len(*o)
	at := o.begin(responseHeaders)
	o.string(headerKey, name)
	value, n := o.begin(headerValue), 0
	for i := range c.judged {
		j := &c.judged[i]
		if j.class == nil || c.sameClass(i) != nil {
			continue
		}
		if n > 0 {
			*o = append(*o, ", "...)
		}
		n++
		a, b := of(c.worst(j))
		*o = append(append(*o, j.class.policy...), first...)
		*o = append(strconv.AppendInt(*o, a, 10), second...)
		*o = strconv.AppendInt(*o, b, 10)
	}
	o.end(value)
	o.end(at)
	if n == 0 {
		*o = (*o)[:start] // nothing to tell
	}
}

// worst returns the first refused descriptor of j's class, or j.
func (c *call) worst(j *judged) *judged {
	for i := range c.judged {
		if k := &c.judged[i]; k.class == j.class && !k.ok {
			return k
		}
	}
	return j
}

// writeMetadata writes a google.protobuf.Struct.
func (s *Service) writeMetadata(o *out, j *judged) {
	at := o.begin(responseMetadata)
	if j.class != nil {
		o.entry("budget", j.class.budget)
		o.entry("class", j.class.name)
		o.entry("reason", j.reason.String())
	} else {
		o.entry("reason", "unknown")
	}
	o.end(at)
}

func (o *out) entry(key, value string) {
	at := o.begin(structFields)
	o.string(mapKey, key)
	v := o.begin(mapValue)
	o.string(valueString, value)
	o.end(v)
	o.end(at)
}

func (o *out) header(name, value string) {
	at := o.begin(responseHeaders)
	o.string(headerKey, name)
	o.string(headerValue, value)
	o.end(at)
}

func (o *out) headerBytes(name string, value []byte) {
	at := o.begin(responseHeaders)
	o.string(headerKey, name)
	o.bytes(headerValue, value)
	o.end(at)
}
