package web

import (
	"context"
	"testing"

	"subak/internal/api"
)

// serve runs a server until the test ends.
func serve(t *testing.T, cfg Config, b Backend) *Server {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	s, err := New(cfg, b)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s
}

func run(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestTheDashboardShowsTheCluster(t *testing.T) {
	b := newBrowser(t)
	backend := &scripted{scene: fiveCities(), sec: 300, hold: true, ready: true}
	s, err := New(Config{Listen: "127.0.0.1:0"}, backend)
	if err != nil {
		t.Fatal(err)
	}
	prefill(s, backend)
	run(t, s)
	b.open("http://" + s.Addr() + "/")

	t.Run("the screenshots", func(t *testing.T) {
		b.wait(`document.querySelector('.line-demand').getAttribute('d').length > 2000`)
		b.clickCell("lon", "uncleared")
		b.wait(`document.querySelectorAll('#explain-body .words li').length === 3`)
		b.scheme("light")
		b.shoot("web-light")
		b.scheme("dark")
		b.shoot("web-dark")
		b.size(360, 740, true)
		b.shoot("web-phone")
		b.size(1280, 900, false)
		b.scheme("light")
	})
	b.quiet()
}

func TestManyNodesAndBudgets(t *testing.T) {
	b := newBrowser(t)
	backend := &scripted{scene: crowd(), sec: 300, hold: true, ready: true}
	backend.mend = func(st *api.Status) {
		st.Digests = 2
		st.Members[7].Live, st.Members[7].Gossip, st.Members[7].AgeMillis = false, "dead", 45000
		st.Members[9].Agrees = false
		st.Frozen = true
	}
	s, err := New(Config{Listen: "127.0.0.1:0"}, backend)
	if err != nil {
		t.Fatal(err)
	}
	prefill(s, backend)
	run(t, s)
	b.open("http://" + s.Addr() + "/")
	b.wait(`document.querySelector('.line-demand').getAttribute('d').length > 2000`)
	b.shoot("web-crowd")
	b.size(360, 740, true)
	b.shoot("web-crowd-phone")
	b.quiet()
}
