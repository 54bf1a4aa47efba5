package gate_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"subak/enforce/gate"
)

// bare answers every request on its connections with the same bytes: a backend
// that costs as little as one can.
func bare(t testing.TB) *url.URL {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for skipHead(r) == nil {
					if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\n\r\nhello world\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	return &url.URL{Scheme: "http", Host: ln.Addr().String()}
}

func skipHead(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil || len(line) == 2 {
			return err
		}
	}
}

// tuned is what a careful operator makes of httputil.ReverseProxy.
func tuned(backend *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(backend)
			pr.Out.Host = pr.In.Host
			pr.SetXForwarded()
		},
		Transport:  &http.Transport{MaxIdleConnsPerHost: 1024, IdleConnTimeout: 90 * time.Second, DisableCompression: true},
		BufferPool: &byteBuffers{},
	}
}

type byteBuffers struct{ sync.Pool }

func (b *byteBuffers) Get() []byte {
	if v, ok := b.Pool.Get().(*[]byte); ok {
		return *v
	}
	return make([]byte, 32<<10)
}

func (b *byteBuffers) Put(p []byte) { b.Pool.Put(&p) }

// plainServer serves h as net/http does.
func plainServer(t testing.TB, h http.Handler) *url.URL {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Close() })
	return &url.URL{Scheme: "http", Host: ln.Addr().String()}
}

// load keeps connections busy with small GETs until n are answered, and returns
// the time of each.
func load(t testing.TB, u *url.URL, conns, n int) []time.Duration {
	var wg sync.WaitGroup
	times := make([][]time.Duration, conns)
	for i := range conns {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer c.Close()
			r := bufio.NewReader(c)
			req := []byte("GET /api/items?id=7 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nCookie: session=abcdef\r\n\r\n")
			for range n / conns {
				begin := time.Now()
				if _, err := c.Write(req); err != nil {
					t.Error(err)
					return
				}
				if err := skipHead(r); err != nil {
					t.Error(err)
					return
				}
				if _, err := r.Discard(12); err != nil {
					t.Error(err)
					return
				}
				times[i] = append(times[i], time.Since(begin))
			}
		})
	}
	wg.Wait()
	all := slices.Concat(times...)
	slices.Sort(all)
	return all
}

// usedCPU is what this process used: client, proxy and backend together.
func usedCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkProxy compares the gate with a tuned and an untuned ReverseProxy over
// real sockets, interleaved, and reports the medians over rounds of ratios within
// a round: of requests per second (more is better), of the 99th percentile and of
// the CPU of client, proxy and backend together (less is). One iteration is one
// round of all three.
func BenchmarkProxy(b *testing.B) {
	for _, conns := range []int{16, 64} {
		b.Run(fmt.Sprintf("conns=%d", conns), func(b *testing.B) {
			w := newWorld(b, 10, 1e9)
			backend := bare(b)
			g := w.gate(gate.Config{
				Backends: to(backend),
				Rules: []gate.Rule{
					{Match: gate.Match{Methods: []string{"POST"}, Path: "/api/*"}, Target: gate.Target{Budget: "origin", Class: "high"}},
					{Match: gate.Match{Path: "/admin/*"}, Target: gate.Target{Budget: "origin", Class: "high"}},
				},
			})
			untuned := httputil.NewSingleHostReverseProxy(backend)
			untuned.Transport = &http.Transport{}
			urls := []*url.URL{serve(b, g), plainServer(b, tuned(backend)), plainServer(b, untuned)}
			const n = 3200
			var rate, plain, tail, cpu []float64
			for _, u := range urls {
				load(b, u, conns, n)
			}
			for round := 0; b.Loop(); round++ {
				var took [3]time.Duration
				var last, used [3]float64
				for i := range urls {
					i = (i + round) % len(urls) // nobody is always first
					begin, before := time.Now(), usedCPU()
					times := load(b, urls[i], conns, n)
					took[i], used[i] = time.Since(begin), float64(usedCPU()-before)
					last[i] = float64(times[len(times)*99/100])
				}
				rate = append(rate, took[1].Seconds()/took[0].Seconds())
				plain = append(plain, took[2].Seconds()/took[0].Seconds())
				tail = append(tail, last[0]/last[1])
				cpu = append(cpu, used[0]/used[1])
			}
			med := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
			b.ReportMetric(med(rate), "x-tuned")
			b.ReportMetric(med(plain), "x-untuned")
			b.ReportMetric(med(tail), "p99-x-tuned")
			b.ReportMetric(med(cpu), "cpu-x-tuned")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkGateOnly and BenchmarkTunedOnly are for profiles.
func BenchmarkGateOnly(b *testing.B) {
	w := newWorld(b, 10, 1e9)
	u := serve(b, w.gate(gate.Config{Backends: to(bare(b))}))
	for b.Loop() {
		load(b, u, 16, 20000)
	}
}

func BenchmarkTunedOnly(b *testing.B) {
	u := plainServer(b, tuned(bare(b)))
	for b.Loop() {
		load(b, u, 16, 20000)
	}
}
