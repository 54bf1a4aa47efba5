package gossip

import (
	"slices"
	"time"

	"github.com/hashicorp/serf/coordinate"
)

// rowArrived takes note of a row of our own lineage. It feeds the loss estimate, and says whether the sender is one we
// hold as dead: then it should be contacted, at most once per every.
func (t *peerTable) rowArrived(name string, counter uint16, copied bool, now time.Time, every time.Duration) (poke bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byName[name]
	if p == nil {
		return false
	}
	if p.member && p.fingerprint == 0 { // its row is ahead of its new metadata
		p.fingerprint = t.own.Load()
		t.publishLocked()
	}
	if !copied {
		p.rows.add(counter)
		t.judgeLocked(p)
	}
	if p.member || p.node == nil || now.Sub(p.poked) < every {
		return false
	}
	p.poked = now
	return true
}

// pinged notes the result of a direct ping.
func (t *peerTable) pinged(name string, rtt time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byName[name]
	if p == nil {
		return
	}
	p.pings.add(ok)
	t.judgeLocked(p)
	if ok && rtt >= 0 && rtt <= maxRTT {
		p.rtts[p.rttCount%rttSamples] = rtt
		p.rttCount++
	}
}

func (t *peerTable) judgeLocked(p *peer) {
	was := p.isLossy
	p.lossPPM, p.isLossy = lossy(was, &p.rows, &p.pings)
	if was != p.isLossy {
		t.publishLocked()
	}
}

// setCoord keeps a peer's validated coordinate.
func (t *peerTable) setCoord(name string, c *coordinate.Coordinate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byName[name]; p != nil {
		p.coord = c
	}
}

// duePings takes up to n members whose ping is due.
func (t *peerTable) duePings(now time.Time, every time.Duration, n int) (due []target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tg := range *t.targets.Load() {
		if len(due) == n {
			break
		}
		p := t.byName[tg.name]
		if p == nil || now.Before(p.nextPing) {
			continue
		}
		p.nextPing = now.Add(every)
		if p.rttCount < rttSamples { // a new peer: learn its distance soon
			p.nextPing = now.Add(min(every, 2*time.Second))
		}
		due = append(due, tg)
	}
	return due
}

// roundTrip is the median of direct pings, else the coordinates' estimate.
func (t *peerTable) roundTrip(name string, distance func(*coordinate.Coordinate) time.Duration) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byName[name]
	switch {
	case p == nil:
		return 0, false
	case p.rttCount > 0:
		return p.medianRTT(), true
	case p.coord != nil:
		return distance(p.coord), true
	}
	return 0, false
}

// medianRTT is the median of the last five direct pings, 0 if there was none.
func (p *peer) medianRTT() time.Duration {
	n := min(p.rttCount, rttSamples)
	if n == 0 {
		return 0
	}
	sorted := p.rtts
	slices.Sort(sorted[:n])
	return sorted[n/2]
}
