package envoy

import (
	"hash/maphash"
	"time"

	"subak/enforce"
)

// call is one call while it is judged. It is reused: nothing of it is kept.
type call struct {
	request
	home     *Door    // whose pool it comes from
	judged   []judged // by descriptor
	charges  []enforce.Charge
	verdicts []enforce.Verdict // by charge
	now      int64
	out      out
}

// judged is what one descriptor comes to.
type judged struct {
	class  *class // nil: nothing can be charged
	charge int    // index, -1 for none
	ok     bool   // by itself
	reason enforce.Reason
	// For the answer.
	quota enforce.Quota
	wait  time.Duration // of a refusal
}

// answer judges a decoded call and writes the response to c.out.
func (s *Service) answer(c *call) {
	c.out = c.out[:0]
	c.judged, c.charges = c.judged[:0], c.charges[:0]
	if c.count > maxDescriptors {
		s.tally.oversized.Add(1)
		s.count(false)
		s.writeUnread(c)
		return
	}
	if c.count == 0 { // the protocol wants one; it is judged like an unknown one
		s.tally.bare.Add(1)
		c.descriptors = append(c.descriptors, descriptor{})
	}
	allowed := true
	for i := range c.descriptors {
		j := s.classify(c, &c.descriptors[i])
		allowed = allowed && j.ok
		c.judged = append(c.judged, j)
	}
	c.now = s.deps.Now()
	// What is denied by name is no demand: no share could let it through.
	ok := (allowed || s.cfg.Shadow) && s.decide(c) && allowed
	s.count(ok)
	s.write(c, ok || s.cfg.Shadow)
}

// count counts a call by its outcome.
func (s *Service) count(ok bool) {
	switch {
	case ok:
		s.tally.admitted.Add(1)
	case s.cfg.Shadow:
		s.tally.shadowed.Add(1)
	default:
		s.tally.refused.Add(1)
	}
}

// classify finds what a descriptor is charged to and adds the charge. The answer's
// ok is false where nothing can be charged and OnUnknown does not let it pass.
func (s *Service) classify(c *call, d *descriptor) judged {
	pairs := c.pairs[d.from:d.to]
	to, known := s.matcher.Find(c.domain, pairs)
	var p place
	if to != nil {
		p = s.places[to.at]
	}
	if known && p.class == nil { // its budget is gone
		known = false
		if f := s.matcher.fallback; f != nil {
			p = s.places[f.at]
		}
	}
	if !known && c.count > 0 {
		s.unknown(c.domain)
	}
	if d.limit {
		s.tally.limits.Add(1) // what a data plane says does not change a budget of the cluster
	}
	j := judged{class: p.class, charge: -1, ok: true}
	switch {
	case p.class == nil:
		j.ok = s.passesUncharged()
	case d.negative:
		// Giving back is only safe for what surely was charged, and nothing
		// says so here: it would mint tokens.
		s.tally.negative.Add(1)
	default:
		j.charge = len(c.charges)
		c.charges = append(c.charges, s.charge(c, d, pairs, p))
	}
	return j
}

func (s *Service) charge(c *call, d *descriptor, pairs []Pair, p place) enforce.Charge {
	hits, peek := max(c.hits, 1), false
	if d.set {
		hits, peek = max(d.hits, 1), d.hits == 0
	}
	cost := int64(enforce.MaxCost + 1) // refused by every bucket
	if hits <= enforce.MaxCost/uint64(p.cost) {
		cost = int64(hits) * p.cost
	}
	r := enforce.Request{Class: p.class.index, Cost: cost, Client: s.client(c.domain, pairs)}
	if p.tenant != "" {
		for i := range pairs {
			if pairs[i].Key == p.tenant {
				r.Tenant = s.deps.Hash(pairs[i].Value)
				break
			}
		}
	}
	return enforce.Charge{Limiter: p.class.limiter, Request: r, Peek: peek}
}

// decide makes all charges or none and says which.
func (s *Service) decide(c *call) bool {
	for len(c.verdicts) < len(c.charges) {
		c.verdicts = append(c.verdicts, enforce.Verdict{})
	}
	ok := enforce.DecideAll(c.now, c.charges, c.verdicts[:len(c.charges)])
	for i := range c.judged {
		j := &c.judged[i]
		if j.charge < 0 {
			continue
		}
		v := c.verdicts[j.charge]
		j.reason, j.ok = v.Reason, v.OK || v.Reason == enforce.Sibling
		if c.charges[j.charge].Peek {
			s.tally.peeks.Add(1)
		} else {
			j.class.counts[v.Reason].Add(1)
		}
	}
	return ok
}

// client hashes what makes a descriptor the same one sent again; 0 where it does
// not say whose it is.
func (s *Service) client(domain string, pairs []Pair) uint64 {
	if s.cfg.Client == "" {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(domain)
	told := false
	for i := range pairs {
		told = told || pairs[i].Key == s.cfg.Client
		h.WriteByte(0)
		h.WriteString(pairs[i].Key)
		h.WriteByte(0)
		h.WriteString(pairs[i].Value)
	}
	if !told {
		return 0
	}
	return max(h.Sum64(), 1)
}
