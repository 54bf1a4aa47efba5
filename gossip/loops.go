package gossip

import (
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	resultOK         = "ok"
	resultFailed     = "failed"
	resultUnresolved = "unresolved"

	// firstDelayMax spreads the first contact after a restart of all nodes.
	firstDelayMax = 250 * time.Millisecond
	// lonelyEvery is the mean time between contacts while no peer is live, and for
	// the first few: when all nodes start at once, islands form around the seeds.
	lonelyEvery = 1500 * time.Millisecond
	eagerTries  = 5
	// isolatedEvery is how often isolation is logged (lesson O15).
	isolatedEvery = time.Minute
	watchEvery    = time.Second
	pingTick      = 500 * time.Millisecond
	maxPings      = 16
	moveEvery     = 30 * time.Second
)

// jitter draws from 2/3 to 4/3 of mean.
func (g *Gossip) jitter(mean time.Duration) time.Duration {
	return mean*2/3 + g.random(mean*2/3)
}

func (g *Gossip) random(below time.Duration) time.Duration {
	g.rngMu.Lock()
	defer g.rngMu.Unlock()
	return time.Duration(g.rng.Int64N(int64(below) + 1))
}

func (g *Gossip) shuffled(n int) []int {
	g.rngMu.Lock()
	defer g.rngMu.Unlock()
	return g.rng.Perm(n)
}

// pause waits; false means the end.
func (g *Gossip) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-g.ctx.Done():
		return false
	}
}

// rejoinLoop contacts one random seed over and over, whatever the state
// (testbed.md: rejoining only what is missing gets stuck), and one lost member.
func (g *Gossip) rejoinLoop() {
	wait := g.random(firstDelayMax)
	for try := 1; g.pause(wait); try++ {
		if !g.leaving.Load() {
			g.rejoinSeed()
			g.rejoinLost()
		}
		wait = g.jitter(g.cfg.RejoinInterval)
		if try < eagerTries || g.Joined().State != Joined {
			wait = min(wait, g.jitter(lonelyEvery))
		}
	}
}

// rejoinSeed contacts one random seed. A node that is in no cluster goes on to the
// next at once when one does not answer: a seed that is down must not hold up a
// start by the pause between tries.
func (g *Gossip) rejoinSeed() {
	for _, i := range g.shuffled(len(g.cfg.Seeds)) {
		seed := g.cfg.Seeds[i]
		addrs, err := g.resolveSeed(seed)
		if err != nil {
			g.metrics.rejoins.WithLabelValues(resultUnresolved).Inc()
			g.logRejoin(seed, err)
			continue
		}
		if len(addrs) == 0 {
			continue // ourselves
		}
		if g.contact(seed, addrs) || g.Joined().State == Joined {
			return
		}
	}
}

// resolveSeed gives memberlist's form of the seed's addresses, without our own.
func (g *Gossip) resolveSeed(seed string) ([]string, error) {
	host, port, err := splitHostPort(seed, -1)
	if err != nil {
		return nil, err
	}
	ips, err := resolve(g.ctx, g.lookup, host)
	if err != nil {
		return nil, err
	}
	self := g.Addr()
	var out []string
	for _, ip := range ips {
		if a := netip.AddrPortFrom(ip, port).String(); a != self {
			out = append(out, a)
		}
	}
	return out, nil
}

func (g *Gossip) rejoinLost() {
	names, addrs := g.peers.lostAddresses()
	if len(addrs) == 0 {
		return
	}
	i := g.shuffled(len(addrs))[0]
	g.contact(names[i], addrs[i:i+1])
}

// contact does a push/pull with the given addresses and says whether it worked.
func (g *Gossip) contact(who string, addrs []string) bool {
	_, err := g.ml.Load().Join(addrs)
	if err == nil {
		g.metrics.rejoins.WithLabelValues(resultOK).Inc()
		return true
	}
	g.metrics.rejoins.WithLabelValues(resultFailed).Inc()
	if g.ctx.Err() == nil {
		g.logRejoin(who, err)
	}
	return false
}

func (g *Gossip) logRejoin(who string, err error) {
	ok, suppressed := g.limit.allow("rejoin "+who, isolatedEvery)
	if !ok {
		return
	}
	g.log.Warn("cannot join", "node", who, "error", strings.Join(strings.Fields(err.Error()), " "), "hint", joinHint(err.Error()), "suppressed", suppressed)
}

// joinHint says what a person can do about a failed contact.
func joinHint(text string) string {
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case has("EOF"), has("connection reset"):
		return "it hung up: is it of another cluster, or has it another gossip key?"
	case has("o installed keys could decrypt"), has("ncryption"), has("encrypted"):
		return "it has another gossip key, or none: give all nodes the same gossip.keys"
	case has("resolve "):
		return "the name has no address now: check gossip.seeds and DNS; it is tried again for ever"
	case has("connection refused"):
		return "nothing listens there: is the node up, and is it the port of gossip.listen?"
	case has("timeout"), has("no route"), has("unreachable"):
		return "no answer: check the address and firewalls, for UDP and TCP"
	}
	return "it is tried again for ever"
}

// askPoke asks for contact to a peer believed dead that sends rows.
func (g *Gossip) askPoke(name string) {
	select {
	case g.pokes <- name:
	default: // the next row asks again
	}
}

// pokeLoop contacts such peers. In the push/pull they learn that they are held
// for dead, and refute it with an incarnation above the accusation (lesson O17).
func (g *Gossip) pokeLoop() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case name := <-g.pokes:
			if addr, ok := g.peers.address(name); ok && !g.leaving.Load() {
				g.contact(name, []string{addr})
			}
		}
	}
}

// pingLoop measures the way to every peer in turn. With many peers the rate is
// bounded by maxPings under way.
func (g *Gossip) pingLoop() {
	var pings sync.WaitGroup
	defer pings.Wait()
	slots := make(chan struct{}, maxPings)
	every := g.cfg.Profile.pingEvery()
	for g.pause(pingTick) {
		for _, t := range g.peers.duePings(time.Now(), every, maxPings-len(slots)) {
			slots <- struct{}{}
			pings.Go(func() {
				defer func() { <-slots }()
				g.ping(t)
			})
		}
	}
}

func (g *Gossip) ping(t target) {
	rtt, err := g.ml.Load().Ping(t.name, udpAddr(t.node))
	if g.ctx.Err() != nil {
		return // says nothing about the peer
	}
	if err != nil {
		g.metrics.pings.WithLabelValues(resultFailed).Inc()
	} else {
		g.metrics.pings.WithLabelValues(resultOK).Inc()
	}
	g.peers.pinged(t.name, rtt, err == nil)
}

// resendLoop sends second copies when they are due; all have the same delay, so
// the queue is in order.
func (g *Gossip) resendLoop() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case r := <-g.resends:
			if !g.pause(time.Until(r.due)) {
				return
			}
			g.sendAgain(r)
		}
	}
}

// watchLoop tells people of gained and lost peers, and forgets old entries.
func (g *Gossip) watchLoop() {
	was := NeverJoined
	var logged time.Time
	for g.pause(watchEvery) {
		now := time.Now()
		for _, name := range g.peers.expire(now) {
			g.coords.ForgetNode(name)
		}
		j := g.Joined()
		if j.State != was {
			g.log.Info("membership state", "was", was.String(), "now", j.State.String(), "live", j.Live)
			was, logged = j.State, now
		}
		if j.Isolated && now.Sub(logged) >= isolatedEvery {
			logged = now
			g.log.Warn("isolated: no peer can be reached", "state", j.State.String(), "seeds", strings.Join(g.cfg.Seeds, ","))
		}
	}
}

// moveLoop follows the advertised name: when it resolves to another address, the
// node leaves and comes back under the new one, as memberlist cannot change the
// address of a live node.
func (g *Gossip) moveLoop() {
	if g.cfg.Advertise == "" || g.cfg.Transport != nil || isLiteral(g.cfg.Advertise) {
		return
	}
	for g.pause(g.jitter(moveEvery)) {
		if g.follow() {
			g.rejoinSeed()
		}
	}
}

// follow resolves the advertised name, moves if it has to, and says whether it did.
func (g *Gossip) follow() bool {
	g.moveMu.Lock()
	defer g.moveMu.Unlock()
	adv, err := advertised(g.ctx, g.lookup, g.cfg.Advertise, g.bound)
	if err != nil {
		if ok, suppressed := g.limit.allow("advertise", isolatedEvery); ok && g.ctx.Err() == nil {
			g.log.Warn("advertised address cannot be resolved; keeping the old one", "error", err, "suppressed", suppressed)
		}
		return false
	}
	return (adv != g.adv || g.offline.Load()) && g.move(adv)
}

func isLiteral(hostport string) bool {
	host, _, err := splitHostPort(hostport, 0)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}

// move starts memberlist anew under the address adv. If that fails the node is
// offline until the next try.
func (g *Gossip) move(adv netip.AddrPort) bool {
	g.life.RLock() // Close waits until memberlist is whole again
	defer g.life.RUnlock()
	if g.closed || g.leaving.Load() {
		return false
	}
	g.log.Warn("advertised address has changed: rejoining under the new one", "was", g.adv.String(), "now", adv.String())
	if !g.offline.Load() {
		old := g.ml.Load()
		_ = old.Leave(time.Second) // bounded; a lost leave costs the others a time-out
		g.offline.Store(true)
		_ = old.Shutdown()
		g.peers.allGone(time.Now())
	}
	if err := g.start(); err != nil {
		g.log.Error("cannot start under the new address; trying again", "error", err)
		return false
	}
	g.announce() // the fingerprint may have been set since memberlist asked for it
	g.metrics.moves.Inc()
	return true
}
