package cluster

import (
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

func TestFreePortsAreFreeForBothProtocolsAndOutOfTheWay(t *testing.T) {
	ports, err := FreePorts("127.0.0.3", 5, rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, a := range ports {
		host, port, err := net.SplitHostPort(a)
		if err != nil || host != "127.0.0.3" || seen[port] {
			t.Errorf("address %s (%v) among %v", a, err, ports)
		}
		seen[port] = true
		if err := tryListen(a); err != nil {
			t.Error(err)
		}
	}
	taken, err := net.ListenPacket("udp", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if tryListen(taken.LocalAddr().String()) == nil {
		t.Error("a port in use for UDP counts as free")
	}
}
