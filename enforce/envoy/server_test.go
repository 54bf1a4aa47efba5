package envoy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"subak/enforce/envoy"
	"subak/enforce/tlsfiles"
)

// serve runs a server at an address and returns what to dial.
func serve(t testing.TB, s *envoy.Server, address string) string {
	t.Helper()
	l, err := envoy.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

func dial(t testing.TB, target string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// authority signs certificates.
type authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a certificate for 127.0.0.1 as two PEM blocks.
func (a *authority) issue(serial int64) (cert, key []byte) {
	k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "leaf"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kd, _ := x509.MarshalECPrivateKey(k)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kd})
}

// client returns credentials that trust a, with a certificate of by if not nil.
func (a *authority) client(by *authority) credentials.TransportCredentials {
	cfg := &tls.Config{RootCAs: a.pool}
	if by != nil {
		pair, err := tls.X509KeyPair(by.issue(7))
		if err != nil {
			a.t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(cfg)
}

func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// mutual writes a server's files.
func mutual(t testing.TB, a *authority) tlsfiles.Config {
	dir := t.TempDir()
	cert, key := a.issue(10)
	return tlsfiles.Config{
		CertFile: write(t, filepath.Join(dir, "cert.pem"), cert), KeyFile: write(t, filepath.Join(dir, "key.pem"), key),
		ClientCAFile: write(t, filepath.Join(dir, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})),
	}
}

func TestAnEnvoyIsAnsweredOverTCPUnixAndMutualTLS(t *testing.T) {
	a := newAuthority(t)
	files, err := tlsfiles.Open(mutual(t, a), "h2")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, address string
		tls           *tls.Config
		creds         credentials.TransportCredentials
	}{
		{"tcp", "127.0.0.1:0", nil, nil},
		{"unix", "unix:" + filepath.Join(t.TempDir(), "envoy.sock"), nil, nil},
		{"mtls", "127.0.0.1:0", files.TLS(), a.client(a)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 13, 2)
			srv := envoy.NewServer(envoy.ServerConfig{TLS: tc.tls}, envoy.NewDoor(w.service(rules())))
			conn := dial(t, serve(t, srv, tc.address), tc.creds)
			client := ratelimitv3.NewRateLimitServiceClient(conn)
			for i, want := range []string{"+ ++", "+ ++", "- -+"} {
				res, err := client.ShouldRateLimit(t.Context(), edge(pay(), vip()))
				if err != nil {
					t.Fatal(err)
				}
				wantCodes(t, res, want)
				if got := header(res, "retry-after"); (got == "1") != (i == 2) {
					t.Errorf("call %d: retry-after %q", i, got)
				}
			}
			for _, name := range []string{"", "envoy.service.ratelimit.v3.RateLimitService"} {
				h, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
				if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
					t.Errorf("health of %q: %v, %v", name, h, err)
				}
			}
			checkReflection(t, conn)
		})
	}
}

// checkReflection does what grpcurl does to list and describe.
func checkReflection(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exchange := func(r *reflectionv1.ServerReflectionRequest) *reflectionv1.ServerReflectionResponse {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		res, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	const name = "envoy.service.ratelimit.v3.RateLimitService"
	list := exchange(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	var names []string
	for _, s := range list.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	for _, want := range []string{name, "grpc.health.v1.Health"} {
		if !slices.Contains(names, want) {
			t.Errorf("services %v: no %s", names, want)
		}
	}
	file := exchange(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}})
	var fd descriptorpb.FileDescriptorProto
	if bs := file.GetFileDescriptorResponse().GetFileDescriptorProto(); len(bs) == 0 || proto.Unmarshal(bs[0], &fd) != nil || !strings.HasSuffix(fd.GetName(), "rls.proto") {
		t.Errorf("no description of %s: %v", name, file)
	}
}

func TestMutualTLSLetsNobodyElseIn(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	cfg := mutual(t, a)
	files, err := tlsfiles.Open(cfg, "h2")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 100, 100)
	addr := serve(t, envoy.NewServer(envoy.ServerConfig{TLS: files.TLS()}, envoy.NewDoor(w.service(rules()))), "127.0.0.1:0")
	for name, creds := range map[string]credentials.TransportCredentials{
		"no certificate": a.client(nil), "a stranger's": a.client(stranger), "clear text": nil,
	} {
		_, err := ratelimitv3.NewRateLimitServiceClient(dial(t, addr, creds)).ShouldRateLimit(t.Context(), edge(web()))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v, want unavailable", name, err)
		}
	}
	w.wantLeft(100, 100)

	cert, key := a.issue(11) // renewed: connections from now on meet the new one
	write(t, cfg.CertFile, cert)
	write(t, cfg.KeyFile, key)
	if changed, err := files.Reload(); !changed || err != nil {
		t.Fatalf("reload: %v, %v", changed, err)
	}
	pair, err := tls.X509KeyPair(a.issue(7))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != 11 {
		t.Errorf("certificate %d in force, want 11", got)
	}
}

// Lesson O25.
func TestHealthAgreesWithReadiness(t *testing.T) {
	var ready atomic.Bool
	w := newWorld(t, 100, 100)
	srv := envoy.NewServer(envoy.ServerConfig{Ready: func() (bool, string) { return ready.Load(), "no epoch" }}, envoy.NewDoor(w.service(rules())))
	client := grpc_health_v1.NewHealthClient(dial(t, serve(t, srv, "127.0.0.1:0"), nil))
	const name = "envoy.service.ratelimit.v3.RateLimitService"
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{2, 1, 2} { // not serving, serving, not serving
		ready.Store(want == grpc_health_v1.HealthCheckResponse_SERVING)
		res, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || res.GetStatus() != want {
			t.Errorf("check: %v, %v, want %v", res, err, want)
		}
		list, err := client.List(t.Context(), &grpc_health_v1.HealthListRequest{})
		if err != nil || list.GetStatuses()[""].GetStatus() != want || list.GetStatuses()[name].GetStatus() != want {
			t.Errorf("list: %v, %v, want %v", list, err, want)
		}
		if res, err := watch.Recv(); err != nil || res.GetStatus() != want {
			t.Errorf("watch: %v, %v, want %v", res, err, want)
		}
	}
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "x"}); status.Code(err) != codes.NotFound {
		t.Errorf("check of a stranger: %v", err)
	}
	other, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := other.Recv(); err != nil || res.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Errorf("watch of a stranger: %v, %v", res, err)
	}
}

// stuck is a part whose calls last until released.
type stuck struct{ entered, release chan struct{} }

func (s *stuck) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Stuck", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Wait", Handler: func(_ any, _ context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := receive(&grpc_health_v1.HealthCheckRequest{}); err != nil {
				return nil, err
			}
			s.entered <- struct{}{}
			<-s.release
			return &grpc_health_v1.HealthCheckResponse{}, nil
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Panic", ServerStreams: true, ClientStreams: true, Handler: func(any, grpc.ServerStream) error { panic("stream") }}},
	}, s)
}

func TestShutdownEndsWatchesWaitsForCallsAndIsBounded(t *testing.T) {
	for _, patient := range []bool{true, false} {
		part := &stuck{make(chan struct{}), make(chan struct{})}
		srv := envoy.NewServer(envoy.ServerConfig{}, part)
		conn := dial(t, serve(t, srv, "127.0.0.1:0"), nil)
		watch, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		call := make(chan error)
		go func() {
			call <- conn.Invoke(context.WithoutCancel(t.Context()), "/test.Stuck/Wait", &grpc_health_v1.HealthCheckRequest{}, &grpc_health_v1.HealthCheckResponse{})
		}()
		<-part.entered
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan error)
		go func() { end <- srv.Shutdown(ctx) }()
		if res, err := watch.Recv(); err != nil || res.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("watch: %v, %v", res, err)
		}
		if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("watch ends with %v", err)
		}
		if patient {
			close(part.release)
			if err := <-call; err != nil {
				t.Errorf("a call under way: %v", err)
			}
			if err := <-end; err != nil {
				t.Errorf("shutdown: %v", err)
			}
		} else {
			cancel()
			if err := <-end; !errors.Is(err, context.Canceled) {
				t.Errorf("shutdown: %v", err)
			}
			if err := <-call; err == nil {
				t.Error("the call was not cut off")
			}
			close(part.release)
		}
		cancel()
	}
}

func TestAPanicFailsItsCallOnly(t *testing.T) {
	w := newWorld(t, 100, 100)
	deps := w.deps()
	var calm atomic.Bool
	deps.Now = func() int64 {
		if !calm.Load() {
			panic("clock")
		}
		return w.now.Load()
	}
	s, err := envoy.New(rules(), deps)
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, serve(t, envoy.NewServer(envoy.ServerConfig{}, envoy.NewDoor(s), &stuck{}), "127.0.0.1:0"), nil)
	client := ratelimitv3.NewRateLimitServiceClient(conn)
	if _, err := client.ShouldRateLimit(t.Context(), edge(web())); status.Code(err) != codes.Internal {
		t.Errorf("%v, want internal", err)
	}
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/test.Stuck/Panic")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&grpc_health_v1.HealthCheckResponse{}); status.Code(err) != codes.Internal {
		t.Errorf("stream: %v, want internal", err)
	}
	calm.Store(true)
	if _, err := client.ShouldRateLimit(t.Context(), edge(web())); err != nil {
		t.Errorf("after the panic: %v", err)
	}
	if got := metric(t, s, "failures_total", "kind=panic"); got != 1 {
		t.Errorf("%v panics, want 1", got)
	}
}

func TestWhatCannotBeReadIsAnErrorAndCounted(t *testing.T) {
	w := newWorld(t, 100, 100)
	s := w.service(rules())
	addr := serve(t, envoy.NewServer(envoy.ServerConfig{MessageBytes: 1000}, envoy.NewDoor(s)), "127.0.0.1:0")
	client := ratelimitv3.NewRateLimitServiceClient(dial(t, addr, nil))
	if _, err := client.ShouldRateLimit(t.Context(), edge(describe(entry("path", strings.Repeat("x", 2000))))); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("too large: %v", err)
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	bad := []byte{0x12, 0xff}
	if err := conn.Invoke(t.Context(), ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, &bad, nil); status.Code(err) != codes.Internal {
		t.Errorf("malformed: %v", err)
	}
	if got := metric(t, s, "failures_total", "kind=malformed"); got != 2 {
		t.Errorf("%v malformed, want 2", got)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	w := newWorld(t, 100, 100)
	addr := serve(t, envoy.NewServer(envoy.ServerConfig{Connections: 1}, envoy.NewDoor(w.service(rules()))), "127.0.0.1:0")
	first := dial(t, addr, nil)
	if _, err := ratelimitv3.NewRateLimitServiceClient(first).ShouldRateLimit(t.Context(), edge(web())); err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	conn := dial(t, addr, nil)
	go func() {
		_, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), edge(web()), grpc.WaitForReady(true))
		second <- err
	}()
	if _, err := ratelimitv3.NewRateLimitServiceClient(first).ShouldRateLimit(t.Context(), edge(web())); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-second:
		t.Errorf("the second connection was served beside the first: %v", err)
	default:
	}
	first.Close()
	if err := <-second; err != nil {
		t.Errorf("when the first was gone: %v", err)
	}
}

func TestASocketFileIsReplacedOnlyWhereNobodyServesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.sock")
	old, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := envoy.Listen(t.Context(), "unix:"+path); err == nil {
		l.Close()
		t.Fatal("took the socket of another server")
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false) // as after a crash
	old.Close()
	l, err := envoy.Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket: %v, %v", info, err)
	}
	file := write(t, filepath.Join(t.TempDir(), "precious"), []byte("x"))
	if l, err := envoy.Listen(t.Context(), "unix:"+file); err == nil {
		l.Close()
		t.Error("replaced a file that is no socket")
	}
}
