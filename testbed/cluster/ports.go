package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// FreePorts finds n addresses host:port on which both TCP and UDP can be listened
// on. The ports lie below the range the kernel takes for outgoing connections, so
// that nothing moves into the port of a node while it is down. Another process may
// still take one before the node does; the node then says so and ends.
func FreePorts(host string, n int, rng *rand.Rand) ([]string, error) {
	const first = 10_000
	end := ephemeralStart()
	var found []string
	var last error
	for range 200 {
		a := net.JoinHostPort(host, strconv.Itoa(first+rng.IntN(end-first)))
		if slices.Contains(found, a) {
			continue
		}
		if err := tryListen(a); err != nil {
			last = err
			continue
		}
		if found = append(found, a); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("cluster: no %d free ports on %s: %w", n, host, last)
}

func tryListen(a string) error {
	l, err := net.Listen("tcp", a)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	u, err := net.ListenPacket("udp", a)
	if err != nil {
		return err
	}
	return u.Close()
}

// ephemeralStart is the first port that the kernel gives to outgoing
// connections: 32768 unless set otherwise.
func ephemeralStart() int {
	const usual, least = 32_768, 11_000
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return usual
	}
	low, err := strconv.Atoi(strings.Fields(string(text) + " 0")[0])
	if err != nil || low < least || low > 65_535 {
		return usual
	}
	return low
}
