package gate

import (
	"context"
	"sync/atomic"
	"time"
)

// A body is paced by paying for each piece of it in full before it is sent: the
// bucket never goes into debt, so what the node sends in any window is within the
// budget's bound, whatever the sizes of responses. What is counted are the bytes
// of bodies and of WebSockets towards clients, not those of heads, of chunked
// framing or of TLS.
//
// A piece that cannot be paid waits in line, first come first served, until it
// can, or until the stall limit cuts its response off. Its first try counts as
// refused and its payment as admitted: so a class of streams that has to wait
// shows up to twice the demand of what it gets. It must show more than it gets,
// or its share could never grow: streams that wait offer nothing else.

const (
	// pieceShare is the part of the bucket that one piece may take: with several,
	// streams take turns rather than wait for one another's bursts.
	pieceShare = 8
	// lookAgain is how long the first in line waits at most before it looks at
	// the share again: it may have grown.
	lookAgain = 50 * time.Millisecond
)

// pacer pays for the bodies that one class of a bytes budget covers.
type pacer struct {
	to      *target
	now     func() int64
	waits   *atomic.Int64
	waiting atomic.Int64  // pieces in line or about to be
	first   chan struct{} // holds one token: of who is first in line
}

// pacer finds or makes the pacer of a target.
func (g *Gate) pacer(to *target) *pacer {
	for _, have := range g.pacers {
		if have.to == to {
			return have
		}
	}
	p := &pacer{to: to, now: g.deps.Now, waits: &g.tally.paced, first: make(chan struct{}, 1)}
	g.pacers = append(g.pacers, p)
	return p
}

// piece is how many of n bytes to pay for at once, one at least.
func (p *pacer) piece(n int) int {
	bucket := p.to.limiter.Quota(p.now(), p.to.index).Cap
	return int(min(int64(n), max(1, bucket/pieceShare)))
}

// take pays for a piece of n bytes and returns how long it is. It waits for at
// most stall; 0 means as long as ctx.
func (p *pacer) take(ctx context.Context, n int, stall time.Duration) (int, error) {
	offered := p.waiting.Load() == 0
	if offered {
		if got := p.try(n); got > 0 {
			return got, nil
		}
	}
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	p.waits.Add(1)
	var over <-chan time.Time
	if stall > 0 {
		t := time.NewTimer(stall)
		defer t.Stop()
		over = t.C
	}
	select {
	case p.first <- struct{}{}:
		defer func() { <-p.first }()
		return p.await(ctx, n, offered, over)
	case <-over:
		return 0, errEgress
	case <-ctx.Done():
		return 0, errClient
	}
}

// await is take for the first in line: nobody else tries. offered says that the
// piece was refused, and counted, before.
func (p *pacer) await(ctx context.Context, n int, offered bool, over <-chan time.Time) (int, error) {
	again := time.NewTimer(0)
	defer again.Stop()
	for ; ; offered = true {
		wait := p.to.limiter.RetryAfter(p.now(), p.to.index, int64(p.piece(n)))
		if wait == 0 || !offered {
			if got := p.try(n); got > 0 {
				return got, nil
			}
		}
		again.Reset(min(max(wait, time.Millisecond), lookAgain))
		select {
		case <-again.C:
		case <-over:
			return 0, errEgress
		case <-ctx.Done():
			return 0, errClient
		}
	}
}

// try pays for a piece if there are tokens, and returns its length, else 0.
func (p *pacer) try(n int) int {
	n = p.piece(n)
	if !p.to.limiter.Decide(p.now(), p.to.index, int64(n)).OK {
		return 0
	}
	return n
}
