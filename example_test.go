package subak_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"subak"
	"subak/enforce/limit"
	"subak/enforce/limit/grpclimit"
	"subak/enforce/limit/httplimit"
)

// single is a cluster of one node, as for a first look. The term is how long
// a first start takes.
func single() subak.Config {
	return subak.Config{
		Cluster: "example", Single: true, Bootstrap: true,
		Gossip: subak.Gossip{Listen: "127.0.0.1:0", Tick: 20 * time.Millisecond, Term: 100 * time.Millisecond},
		Nodes:  []subak.Member{{Name: "ams"}},
		Budgets: []subak.Budget{{
			Name: "origin", Limit: "1000/s",
			Classes: []subak.BudgetClass{{Name: "confirmed", Reserve: "60%"}, {Name: "uncleared", Reserve: "40%"}},
		}},
	}
}

// start opens a node of the example's and waits until it may use its share.
func start(ctx context.Context) (*subak.Node, *limit.Class) {
	node, err := subak.Open(ctx, single(), subak.Options{Node: "ams"})
	if err != nil {
		panic(err)
	}
	class, err := node.Class("origin", "confirmed")
	if err != nil {
		panic(err)
	}
	if err := class.Wait(ctx); err != nil {
		panic(err)
	}
	return node, class
}

// A cluster whose nodes share 20,000 requests per second to an origin. This one has
// a single node, so that it runs anywhere, and a short term, so that it is ready at
// once; one of several locations lists them all in Nodes, with seeds and keys.
func ExampleOpen() {
	ctx := context.Background()
	node, err := subak.Open(ctx, subak.Config{
		Cluster: "edge", Single: true, Bootstrap: true,
		Gossip: subak.Gossip{Listen: "127.0.0.1:0", Tick: 20 * time.Millisecond, Term: 100 * time.Millisecond},
		Nodes:  []subak.Member{{Name: "ams"}},
		Budgets: []subak.Budget{{
			Name: "origin", Limit: "20000/s",
			Classes: []subak.BudgetClass{{Name: "confirmed", Reserve: "60%"}, {Name: "uncleared", Reserve: "40%"}},
		}},
	}, subak.Options{Node: "ams"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close(ctx) }()
	class, err := node.Class("origin", "confirmed")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Until the node is ready, Wait waits and Allow says no.
	if err := class.Wait(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("admitted")
	ready, reason := node.Ready()
	fmt.Println(ready, reason)
	// Output:
	// admitted
	// true single node: serving on the whole budget
}

// All locations may share one file; each says which of its nodes it is.
func ExampleFile() {
	node, err := subak.Open(context.Background(), subak.File("/etc/subak.yaml"), subak.Options{
		Node: "ams", Log: slog.Default(),
	})
	if err != nil {
		log.Fatal(err) // every mistake of the file, with its line and its mend
	}
	defer func() { _ = node.Close(context.Background()) }()
}

// Every mistake of a configuration is told at once, by field.
func ExampleOpen_faults() {
	cfg := single()
	cfg.Budgets[0].Limit = "fast"
	cfg.Nodes[0].Name = "ams 1"
	_, err := subak.Open(context.Background(), cfg, subak.Options{Node: "ams"})
	fmt.Println(err)
	// Output:
	// subak: budgets[0].limit: "fast" has no unit; mend: write a number and a unit, such as 20000/s, 1.2k/s, 600/min, 0.3/s, 5MB/s or 100Mbit/s
	// nodes[0].name: "ams 1" has characters that names do not take; mend: use letters, digits, dots, dashes and underscores, a letter or digit first
}

// Work that may turn out not to be done is paid by a reservation, which gives back
// exactly what it took.
func ExampleNode_Class_reserve() {
	ctx := context.Background()
	node, class := start(ctx)
	defer func() { _ = node.Close(ctx) }()

	r := class.Reserve(1)
	for !r.OK() {
		time.Sleep(r.Delay())
		r = class.Reserve(1)
	}
	found := true // in the cache: the origin is not asked after all
	if found {
		r.Cancel()
	}
	fmt.Println("reserved and given back")
	// Output: reserved and given back
}

// A deadline that comes before the tokens is an error at once, not when it is over.
func ExampleNode_Class_deadline() {
	ctx := context.Background()
	node, class := start(ctx)
	defer func() { _ = node.Close(ctx) }()

	for class.Allow() { // spend what there is
	}
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err := class.WaitN(soon, 400) // two thirds of a second's worth
	fmt.Println(err)
	fmt.Println("waited:", soon.Err() != nil)
	// Output:
	// limit: the deadline is before the tokens: context deadline exceeded
	// waited: false
}

// Middleware refuses as a Subak listener does.
func Example_http() {
	ctx := context.Background()
	node, class := start(ctx)
	defer func() { _ = node.Close(ctx) }()

	wrap, err := httplimit.New(httplimit.Config{
		Class: class,
		Classify: func(r *http.Request) (*limit.Class, limit.Call) {
			return nil, limit.Call{Cost: 600, Tenant: r.Header.Get("X-Api-Key")} // nil: Class
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "served")
	})))
	defer server.Close()
	for class.Allow() { // spend what there is
	}
	resp, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, resp.Header.Get("Retry-After"), resp.Header.Get("Content-Type"))
	// Output: 429 1 application/problem+json
}

// Interceptors end refused calls with RESOURCE_EXHAUSTED and RetryInfo.
func Example_grpc() {
	ctx := context.Background()
	node, class := start(ctx)
	defer func() { _ = node.Close(ctx) }()

	limits := grpclimit.Config{Class: class, Classify: func(context.Context, string) (*limit.Class, limit.Call) {
		return nil, limit.Call{Cost: 600}
	}}
	server := grpc.NewServer(grpc.UnaryInterceptor(limits.UnaryServer()), grpc.StreamInterceptor(limits.StreamServer()))
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for class.Allow() { // spend what there is
	}
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	fmt.Println(status.Code(err) == codes.ResourceExhausted, len(status.Convert(err).Details()))
	// Output: true 2
}
