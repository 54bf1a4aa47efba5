package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const (
	lookupTimeout = 5 * time.Second
	// maxResolved bounds the addresses taken from one name.
	maxResolved = 8
)

var errNoAddress = errors.New("no usable address to advertise: none of this host's addresses can be reached by peers; set gossip advertise to host:port")

// lookupFunc resolves a host name; net.DefaultResolver in production.
type lookupFunc func(ctx context.Context, host string) ([]netip.Addr, error)

func systemLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// splitHostPort reads host:port, [v6]:port and, where defaultPort >= 0, a host
// without a port.
func splitHostPort(s string, defaultPort int) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		bare := strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
		_, ipErr := netip.ParseAddr(bare)
		if defaultPort < 0 || bare == "" || ipErr != nil && strings.Contains(bare, ":") {
			return "", 0, fmt.Errorf("address %q: want host:port", s)
		}
		return bare, uint16(defaultPort), nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: port %q is not a number from 0 to 65535", s, text)
	}
	return host, uint16(n), nil
}

// resolve turns host into addresses, bounded in time and number.
func resolve(ctx context.Context, lookup lookupFunc, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolve %q: %w", host, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("resolve %q: no address", host)
	}
	ips := make([]netip.Addr, 0, min(len(found), maxResolved))
	for _, ip := range found[:min(len(found), maxResolved)] {
		ips = append(ips, ip.Unmap())
	}
	return ips, nil
}

// bindAddress resolves the host of Listen; an empty one means all IPv4
// addresses.
func bindAddress(ctx context.Context, lookup lookupFunc, listen string) (netip.AddrPort, error) {
	host, port, err := splitHostPort(listen, -1)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("gossip listen: %w", err)
	}
	if host == "" {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), port), nil
	}
	ips, err := resolve(ctx, lookup, host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("gossip listen: %w", err)
	}
	return netip.AddrPortFrom(ips[0], port), nil
}

// advertised decides which address peers are told, given the one that is bound
// (with its real port). An explicit name with several addresses yields one
// of the family that is bound, if there is one, so that the choice is stable.
func advertised(ctx context.Context, lookup lookupFunc, advertise string, bound netip.AddrPort) (netip.AddrPort, error) {
	if advertise == "" {
		if !bound.Addr().IsUnspecified() {
			return bound, nil
		}
		ip, err := hostAddress(bound.Addr())
		return netip.AddrPortFrom(ip, bound.Port()), err
	}
	host, port, err := splitHostPort(advertise, int(bound.Port()))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("gossip advertise: %w", err)
	}
	if port == 0 {
		port = bound.Port()
	}
	ips, err := resolve(ctx, lookup, host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("gossip advertise: %w", err)
	}
	best := pickAddress(ips, bound.Addr())
	if best.IsUnspecified() || best.IsMulticast() {
		return netip.AddrPort{}, fmt.Errorf("gossip advertise %q: %v cannot be reached by peers", advertise, best)
	}
	return netip.AddrPortFrom(best, port), nil
}

// Addresses says where a node of these settings would listen, and what it would
// tell its peers; it opens nothing. A port 0 stays 0. The error is that of New.
func Addresses(ctx context.Context, listen, advertise string) (bound, told netip.AddrPort, err error) {
	if bound, err = bindAddress(ctx, systemLookup, listen); err != nil {
		return bound, told, err
	}
	told, err = advertised(ctx, systemLookup, advertise, bound)
	return bound, told, err
}

// pickAddress prefers the family of bound and then the least address: resolvers
// rotate their answers, and a node must not move with each rotation.
func pickAddress(ips []netip.Addr, bound netip.Addr) netip.Addr {
	best := ips[0]
	for _, ip := range ips[1:] {
		same, bestSame := ip.Is4() == bound.Is4(), best.Is4() == bound.Is4()
		if same && !bestSame || same == bestSame && ip.Less(best) {
			best = ip
		}
	}
	return best
}

// hostAddress finds an address of this host for a socket bound to all: private
// before global, IPv4 before IPv6 unless the socket is IPv6 only by intent.
func hostAddress(unspecified netip.Addr) (netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("list addresses of this host: %w", err)
	}
	var found []netip.Addr
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				found = append(found, ip.Unmap())
			}
		}
	}
	return bestHostAddress(found, unspecified)
}

func bestHostAddress(found []netip.Addr, unspecified netip.Addr) (netip.Addr, error) {
	var best netip.Addr
	bestRank := 0
	for _, ip := range found {
		if !ip.IsGlobalUnicast() || unspecified.Is4() && !ip.Is4() {
			continue
		}
		rank := 1
		if ip.IsPrivate() {
			rank += 1
		}
		if ip.Is4() {
			rank += 2
		}
		if rank > bestRank {
			best, bestRank = ip, rank
		}
	}
	if bestRank == 0 {
		return netip.Addr{}, errNoAddress
	}
	return best, nil
}
