package doctor

import (
	"context"
	"fmt"

	"subak/enforce/envoy"
	"subak/enforce/tlsfiles"
	"subak/internal/config"
	"subak/internal/node"
)

// entrance is one address that the node opens for requests.
type entrance struct {
	field, listen string
	tls           *tlsfiles.Config // nil without TLS
}

func entrances(cfg *config.Config) (all []entrance) {
	for i := range cfg.Listeners {
		l := &cfg.Listeners[i]
		all = append(all, entrance{fmt.Sprintf("listeners[%d]", i), l.Listen.String(), l.TLS.Files()})
	}
	for i := range cfg.Envoy {
		e := &cfg.Envoy[i]
		all = append(all, entrance{fmt.Sprintf("envoy[%d]", i), e.Listen.String(), e.TLS.Files()})
	}
	return all
}

// checkTLS reads the certificates and keys as the node would.
func (x *examination) checkTLS() {
	for _, e := range entrances(x.cfg) {
		if e.tls == nil {
			continue
		}
		f, err := tlsfiles.Open(*e.tls)
		if err != nil {
			x.fail("tls", "name PEM files that the node's user may read: a certificate with its chain, and the key that belongs to it", "%s.tls: %v", e.field, err)
			continue
		}
		x.ok("tls", "%s.tls: %s is good until %s", e.field, e.tls.CertFile, f.Expires().Format("2006-01-02"))
	}
}

// checkDoors takes each address for a moment: the node does not run, so nobody
// else should have it.
func (x *examination) checkDoors(ctx context.Context) {
	for _, e := range entrances(x.cfg) {
		l, err := envoy.Listen(ctx, e.listen)
		if err != nil {
			x.fail("door", node.ListenMend(err), "%s.listen: %v", e.field, err)
			continue
		}
		_ = l.Close() // it served its purpose
		x.ok("door", "%s.listen: %s is free", e.field, e.listen)
	}
}
