package doctor

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"subak/gossip"
	"subak/internal/api"
	"subak/internal/node"
)

const advertiseMend = "set gossip.advertise to the host:port at which the other nodes reach this machine"

// checkAddresses judges where the node listens and what it tells its peers, and
// reports whether it could start like that.
func (x *examination) checkAddresses(ctx context.Context) bool {
	const name = "address"
	g := &x.cfg.Gossip
	bound, adv, err := gossip.Addresses(ctx, g.Listen.String(), g.Advertise)
	if err != nil {
		x.fail(name, advertiseMend, "%v", err)
		return false
	}
	before := len(x.checks)
	switch b, a := bound.Addr(), adv.Addr(); {
	case !b.IsUnspecified() && !ownAddress(b):
		x.fail(name, "listen on 0.0.0.0 (or [::]) and set gossip.advertise to "+bound.String(), "gossip.listen %v is no address of this machine", bound)
		return false
	case a.Is6() && b.Is4() && !b.IsUnspecified(): // 0.0.0.0 takes both
		x.fail(name, "listen on [::]:"+port(bound)+", or advertise an IPv4 address", "peers are told the IPv6 address %v, but the node listens on IPv4 only (%v)", adv, bound)
	case b.IsLoopback() && !a.IsLoopback():
		x.warn(name, "listen on 0.0.0.0:"+port(bound), "the node listens on %v only, and tells peers %v: unless this machine forwards that, nobody gets in", bound, adv)
	case a.IsLoopback() && x.seedsElsewhere(ctx, func(s netip.Addr) bool { return !s.IsLoopback() }):
		x.fail(name, advertiseMend, "peers are told %v, which is each machine's own", adv)
	case private(a) && x.seedsElsewhere(ctx, public):
		x.warn(name, advertiseMend, "peers are told %v, a private address, while seeds have public ones", adv)
	}
	if bound.Port() == 0 {
		x.warn(name, "name a port in gossip.listen", "the gossip port changes at each start: seeds and firewalls cannot name it")
	}
	if len(x.checks) == before {
		x.ok(name, "listens on %v, tells peers %v", bound, adv)
	}
	x.checkEncryption(adv.Addr())
	return true
}

func (x *examination) checkEncryption(adv netip.Addr) {
	const name = "encryption"
	switch keys := len(x.secrets.Keys); {
	case keys > 0:
		x.ok(name, "AES-256, keys: %d", keys)
	case public(adv):
		x.fail(name, "give all nodes the same gossip.keys (subak keygen), and allow the port to them alone",
			"there is no key, and peers are told the public address %v: whoever reaches it can forge shares", adv)
	case adv.IsLoopback():
		x.ok(name, "none, on this machine only")
	} // else the configuration's warning has said it
}

func port(a netip.AddrPort) string { return strconv.Itoa(int(a.Port())) }

// shared is the address block of carrier-grade NAT, RFC 6598.
var shared = netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10)

func private(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLinkLocalUnicast() || shared.Contains(a)
}

func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !private(a)
}

// seedsElsewhere reports whether a seed has an address of some kind.
func (x *examination) seedsElsewhere(ctx context.Context, kind func(netip.Addr) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, seed := range x.cfg.Gossip.Seeds {
		host, _, err := net.SplitHostPort(seed)
		if err != nil {
			continue // checked when loaded
		}
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		for _, ip := range ips {
			if err == nil && kind(ip.Unmap()) {
				return true
			}
		}
	}
	return false
}

// ownAddress reports whether a is one of this machine's.
func ownAddress(a netip.Addr) bool {
	if a.IsLoopback() {
		return true // all of 127.0.0.0/8, of which one is listed
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true // the start will tell
	}
	for _, x := range addrs {
		if n, ok := x.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == a.Unmap().WithZone("") {
				return true
			}
		}
	}
	return false
}

// visit takes the place of the node in the network for some seconds.
func (x *examination) visit(ctx context.Context) {
	g := &x.cfg.Gossip
	profile, err := gossip.ParseProfile(string(g.Profile))
	if err != nil {
		x.fail("network", "", "%v", err)
		return
	}
	const suffix = ".doctor"
	name := x.cfg.Node.Name
	visitor, err := gossip.New(gossip.Config{
		Cluster: x.cfg.Cluster.Name, Name: name[:min(len(name), gossip.MaxName-len(suffix))] + suffix,
		Listen: g.Listen.String(), Advertise: g.Advertise, Seeds: g.Seeds, Keys: x.secrets.Keys, Profile: profile,
		Key: func([]byte) (string, [2]uint64, bool) { return "", [2]uint64{}, false },
	}, x.opts.Log, nil)
	switch {
	case err != nil && strings.Contains(err.Error(), syscall.EADDRINUSE.Error()): // memberlist does not wrap it
		x.fail("network", "if it is the node, name its admin address by --admin; else free the port or change gossip.listen", "%v", err)
		return
	case err != nil:
		x.fail("network", "see gossip.listen", "%v", err)
		return
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { _ = visitor.Run(life); close(done) }() // its only errors are of how it is called
	r, err := visitor.Reach(ctx)
	if err == nil {
		found := node.ReachOf(r)
		x.judgeReach(&found)
	} else {
		x.fail("network", "try again", "%v", err)
	}
	_ = visitor.Leave(time.Second) // peers that do not hear it find out by themselves
	end()
	<-done
}

// judgeReach turns what was found of the network into findings.
func (x *examination) judgeReach(r *api.Reach) {
	others, streams := 0, 0
	for _, s := range r.Seeds {
		if !s.Self {
			others++
		}
		if !s.Self && s.ResolveError == "" && s.TCPError == "" {
			streams++
		}
	}
	for i := range r.Seeds {
		x.judgeSeed(&r.Seeds[i], r.Advertised, streams > 0)
	}
	if x.cfg.Cluster.Single {
		return
	}
	if others == 0 {
		x.warn("seeds", "list two or three other nodes in gossip.seeds", "no seed is another node: this one waits to be contacted")
	}
	if len(r.Peers) == 0 {
		x.warn("peers", "start another node, then run this again", "there is no other node to ask whether this one can be reached")
	}
	whole := false
	for _, p := range r.Peers {
		whole = whole || p.UDP && p.TCP
	}
	for i := range r.Peers {
		x.judgePeer(&r.Peers[i], r.Advertised, whole)
	}
}

// judgeSeed judges the way to a seed. One that is down is no fault of this node's
// while others answer.
func (x *examination) judgeSeed(s *api.SeedReach, advertised string, others bool) {
	name := "seed " + s.Seed
	bad := x.fail
	if others {
		bad = x.warn
	}
	switch {
	case s.Self:
		x.ok(name, "is this node")
	case s.ResolveError != "":
		bad(name, "check gossip.seeds and DNS", "%s", s.ResolveError)
	case s.TCPError != "" && s.UDPError != "":
		bad(name, s.Hint, "%s: no answer by UDP, and by TCP: %s", strings.Join(s.Addresses, ", "), s.TCPError)
	case s.TCPError != "":
		bad(name, "open TCP to the port of the seed, not only UDP", "%s: answers by UDP (%.1f ms), not by TCP: %s", strings.Join(s.Addresses, ", "), s.RTTMillis, s.TCPError)
	case s.UDPError != "":
		x.fail(name, "open UDP both ways, not only TCP; behind NAT forward UDP too, and see that gossip.advertise is the outside address",
			"%s: answers by TCP, but no answer by UDP comes back to %s", strings.Join(s.Addresses, ", "), advertised)
	default:
		x.ok(name, "%s: answers by UDP (%.1f ms) and TCP", strings.Join(s.Addresses, ", "), s.RTTMillis)
	}
}

// judgePeer judges the call of a peer to the advertised address.
func (x *examination) judgePeer(p *api.PeerReach, advertised string, others bool) {
	name := "from " + p.Peer
	bad := x.fail
	if others {
		bad = x.warn
	}
	const forward = ": forward it there, UDP and TCP, and open it in firewalls; or " + advertiseMend
	why := ""
	if p.Error != "" {
		why = ": " + p.Error
	}
	switch {
	case p.UDP && p.TCP:
		x.ok(name, "%s reaches %s by UDP and TCP", p.Address, advertised)
	case p.UDP:
		bad(name, "TCP to "+advertised+" does not get here"+forward, "%s reaches %s by UDP, not by TCP%s", p.Address, advertised, why)
	case p.TCP:
		bad(name, "UDP to "+advertised+" does not get here"+forward, "%s reaches %s by TCP, not by UDP", p.Address, advertised)
	default:
		bad(name, "what is sent to "+advertised+" does not get here"+forward, "%s was asked to call %s, and neither UDP nor TCP arrived", p.Address, advertised)
	}
}
