package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

const rlsName = "envoy.service.ratelimit.v3.RateLimitService"

// envoyLines are the lines of an Envoy door at an address.
func envoyLines(address, more string) string {
	if !strings.Contains(more, "quota:") {
		more += "    quota: {ttl: 1s}\n"
	}
	return fmt.Sprintf(`envoy:
  - name: envoys
    listen: %q
    default: {budget: origin, class: low}
%s    domains:
      - name: edge
        budget: origin
        class: low
        rules: [{match: {path: "/high*"}, class: high}]
`, address, more)
}

// patient gives leases a term that an assignment fits in.
func patient(text string) string { return strings.Replace(text, "term: 1s", "term: 2s", 1) }

// dialEnvoy connects to the first Envoy door of a node.
func (l *live) dialEnvoy(t *testing.T, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	at := l.node.doors.envoys[0].listener.Addr()
	target := "passthrough:" + at.String()
	if at.Network() == "unix" {
		target = "unix:" + at.String()
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// askEnvoy asks as an Envoy does.
func askEnvoy(t *testing.T, conn *grpc.ClientConn, path string, hits uint32) (*rlsv3.RateLimitResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{
		Domain: "edge", HitsAddend: hits,
		Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "path", Value: path}}}},
	})
}

func health(t *testing.T, conn *grpc.ClientConn, service string) healthpb.HealthCheckResponse_ServingStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		return healthpb.HealthCheckResponse_UNKNOWN
	}
	return r.Status
}

// services lists what reflection says.
func services(t *testing.T, conn *grpc.ClientConn) (names []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := reflectpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ask := &reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	return names
}

func TestAnEnvoyDoorServesAndItsHealthAgreesWithReadiness(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": "unix:" + filepath.Join(t.TempDir(), "envoy.sock")} {
		t.Run(name, func(t *testing.T) {
			a := begin(t, setup{name: "a", dir: t.TempDir(), more: envoyLines(address, "")})
			conn := a.dialEnvoy(t, insecure.NewCredentials())
			if ready, _ := a.node.Ready(); !ready {
				if h := health(t, conn, ""); h != healthpb.HealthCheckResponse_NOT_SERVING && !a.status().Ready {
					t.Errorf("health %v while the node is not ready", h)
				}
			}
			eventually(t, "the node and its gRPC health are ready", func() bool {
				return a.status().Ready && health(t, conn, "") == healthpb.HealthCheckResponse_SERVING &&
					health(t, conn, rlsName) == healthpb.HealthCheckResponse_SERVING
			})
			for _, want := range []string{rlsName, "grpc.health.v1.Health"} {
				if got := services(t, conn); !slices.Contains(got, want) {
					t.Errorf("reflection lists %v, want %s", got, want)
				}
			}
			eventually(t, "a request is admitted", func() bool {
				r, err := askEnvoy(t, conn, "/high/1", 1)
				return err == nil && r.OverallCode == rlsv3.RateLimitResponse_OK
			})
			r, err := askEnvoy(t, conn, "/high/1", 600) // the share of the class, for one second
			for err == nil && r.OverallCode == rlsv3.RateLimitResponse_OK {
				r, err = askEnvoy(t, conn, "/high/1", 600)
			}
			if err != nil || r.OverallCode != rlsv3.RateLimitResponse_OVER_LIMIT {
				t.Errorf("%v, %v: want OVER_LIMIT", r, err)
			}
			if n, _ := metric(t, a, "budget_envoy_decisions_total", "class=high"); n < 2 {
				t.Errorf("%v decisions counted", n)
			}
			eventually(t, "the door's demand is the class's", func() bool {
				c := a.status().Budgets[0].Classes[0]
				return c.Refused > 0 && c.Offered > c.Refused
			})
		})
	}
}

func TestALeavingNodeSaysSoByGRPCAndIsNotHeldUpByStreams(t *testing.T) {
	t.Parallel()
	s := setup{name: "a", dir: t.TempDir(), drain: time.Minute, more: envoyLines("127.0.0.1:0", "    quota: {enabled: true, ttl: 1s}\n")}
	a := beginText(t, s, patient(s.yaml()))
	conn := a.dialEnvoy(t, insecure.NewCredentials())
	eventually(t, "a is ready", func() bool { return a.status().Ready })
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := watch.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v, %v: want SERVING", r, err)
	}
	quota, err := quotav3.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := &quotav3.BucketId{Bucket: map[string]string{"path": "/high"}}
	if err := quota.Send(&quotav3.RateLimitQuotaUsageReports{
		Domain: "edge", BucketQuotaUsages: []*quotav3.RateLimitQuotaUsageReports_BucketQuotaUsage{{BucketId: id, NumRequestsAllowed: 1}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := quota.Recv(); err != nil {
		t.Fatalf("no assignment: %v", err)
	}
	if n, _ := metric(t, a, "budget_quota_buckets", "service=envoys"); n != 1 {
		t.Errorf("%v buckets in the metrics, want 1", n)
	}
	problems, err := testutil.GatherAndLint(a.node.reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	over := make(chan struct{})
	go func() { defer close(over); a.end() }() // within its bounds, or the test hangs
	for err == nil {
		_, err = quota.Recv()
	}
	said := false
	for {
		r, err := watch.Recv()
		if err != nil {
			break
		}
		said = said || r.Status == healthpb.HealthCheckResponse_NOT_SERVING
	}
	if !said {
		t.Error("the watch of its health never heard that it leaves")
	}
	<-over
	if said := a.logged.String(); strings.Contains(said, "cut off") {
		t.Errorf("something was cut off:\n%s", said)
	}
}

func TestAnEnvoyDoorFollowsAReload(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	s := setup{name: "a", dir: t.TempDir(), roster: []string{"a", "b"}}
	text := func(more string) string { s := s; s.more = more; return patient(s.yaml()) }
	a := beginText(t, s, text(""))
	eventually(t, "a is ready", func() bool { return a.status().Ready })

	mustSay(t, a.reload(text(envoyLines(address, ""))), "door opens", "listener=envoys", "listeners are as in the file")
	conn := a.dialEnvoy(t, insecure.NewCredentials())
	code := func(path string) rlsv3.RateLimitResponse_Code {
		r, err := askEnvoy(t, conn, path, 1)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return rlsv3.RateLimitResponse_UNKNOWN
		}
		return r.OverallCode
	}
	eventually(t, "it admits", func() bool { return code("/high") == rlsv3.RateLimitResponse_OK })
	before, _ := metric(t, a, "budget_envoy_calls_total")

	deny := strings.Replace(envoyLines(address, "    on_unknown: deny\n"), "    default: {budget: origin, class: low}\n", "", 1)
	deny = strings.Replace(deny, "        class: low\n", "", 1)
	mustSay(t, a.reload(text(deny)), "listeners are as in the file")
	if c := code("/other"); c != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("a descriptor of no rule where unknown ones are denied: %v", c)
	}
	if n, _ := metric(t, a, "budget_envoy_calls_total"); n <= before {
		t.Errorf("%v calls counted after %v: the counters began anew", n, before)
	}
	eventually(t, "the rules' own class admits", func() bool { return code("/high") == rlsv3.RateLimitResponse_OK })

	quota := envoyLines(address, "    quota: {enabled: true, ttl: 1s}\n")
	mustSay(t, a.reload(text(quota)), "served anew")
	eventually(t, "the quota service is there, at the same address", func() bool {
		return slices.Contains(services(t, conn), "envoy.service.rate_limit_quota.v3.RateLimitQuotaService")
	})
	eventually(t, "the rate limit service goes on", func() bool { return code("/high") == rlsv3.RateLimitResponse_OK })

	taken := strings.Replace(quota, "    listen: ", "    listen: \"203.0.113.1:81\" #", 1)
	mustSay(t, a.reload(text(taken)), "listeners stay as they are", "envoy[0].listen", "address of this machine")
	if c := code("/other"); c == rlsv3.RateLimitResponse_UNKNOWN {
		t.Error("the door of before is gone")
	}
	mustSay(t, a.reload(text("")), "door closes", "listener=envoys")
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("a door that is gone accepts")
	}
	mustSay(t, a.reload(text(quota)), "door opens")
	// What the service before has assigned may still be running out.
	_, same := metric(t, a, "budget_quota_streams", "service=envoys")
	if _, all := metric(t, a, "budget_quota_streams"); same != 0 || all != 1 {
		t.Error("the second quota service carves under the name of the first")
	}
	eventually(t, "it admits again", func() bool {
		r, err := askEnvoy(t, conn, "/high", 1)
		return err == nil && r.OverallCode == rlsv3.RateLimitResponse_OK
	})
}

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	last int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), last: 1}
	a.key = newKey(t)
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue writes cert.pem and key.pem with a new certificate and returns its serial.
func (a *authority) issue() int64 {
	a.t.Helper()
	a.last++
	k := newKey(a.t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(a.last), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, k.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write("cert.pem", "CERTIFICATE", der)
	a.write("key.pem", "EC PRIVATE KEY", raw)
	return a.last
}

// client believes the authority, and shows the present certificate if it should.
func (a *authority) client(show bool) *tls.Config {
	a.t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	c.RootCAs.AddCert(a.cert)
	if show {
		pair, err := tls.LoadX509KeyPair(a.path("cert.pem"), a.path("key.pem"))
		if err != nil {
			a.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// serial is the serial number that a TLS listener shows a client.
func serial(t *testing.T, address string, client *tls.Config) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", address, client)
	if err != nil {
		t.Errorf("tls: %v", err)
		return 0
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestAnEnvoyDoorWantsTheCertificatesThatItsFileSays(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	first := ca.issue()
	lines := envoyLines("127.0.0.1:0", fmt.Sprintf("    tls: {cert_file: %q, key_file: %q, client_ca_file: %q}\n", ca.path("cert.pem"), ca.path("key.pem"), ca.path("ca.pem")))
	a := begin(t, setup{name: "a", dir: t.TempDir(), more: lines})
	works := func(c credentials.TransportCredentials) error {
		_, err := askEnvoy(t, a.dialEnvoy(t, c), "/high", 1)
		return err
	}
	if err := works(credentials.NewTLS(ca.client(true))); err != nil {
		t.Errorf("a client with a certificate: %v", err)
	}
	for who, c := range map[string]credentials.TransportCredentials{
		"without a certificate": credentials.NewTLS(ca.client(false)), "in clear text": insecure.NewCredentials(),
	} {
		if err := works(c); err == nil {
			t.Errorf("a client %s is served", who)
		} else if status.Convert(err).Message() == "" {
			t.Errorf("a client %s: %v", who, err)
		}
	}
	address := a.node.doors.envoys[0].listener.Addr().String()
	if got := serial(t, address, ca.client(true)); got != first {
		t.Errorf("serial %d, want %d", got, first)
	}
	second := ca.issue()
	a.reload(setup{name: "a", more: lines}.yaml())
	if got := serial(t, address, ca.client(true)); got != second {
		t.Errorf("serial %d after SIGHUP, want %d", got, second)
	}
}

func TestAListenerTurnsToTLSAtTheSameAddressAndFollowsItsFiles(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	first := ca.issue()
	s := setup{name: "a", dir: t.TempDir(), backend: backend(t)}
	a := begin(t, s)
	eventually(t, "it serves in clear text", func() bool { return a.get("/high") == 200 })
	address := a.node.doors.list[0].listener.Addr().String()
	secure := strings.Replace(s.yaml(), "edge, ", fmt.Sprintf("edge, tls: {cert_file: %q, key_file: %q}, ", ca.path("cert.pem"), ca.path("key.pem")), 1)
	mustSay(t, a.reload(secure), "served anew", "listeners are as in the file")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: ca.client(false), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	eventually(t, "it serves by TLS", func() bool {
		resp, err := client.Get("https://" + address + "/high")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == 200 && resp.ProtoMajor == 2
	})
	if got := serial(t, address, ca.client(false)); got != first {
		t.Errorf("serial %d, want %d", got, first)
	}
	second := ca.issue()
	a.reload(secure)
	if got := serial(t, address, ca.client(false)); got != second {
		t.Errorf("serial %d after SIGHUP, want %d", got, second)
	}
	if err := os.WriteFile(ca.path("key.pem"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustSay(t, a.reload(secure), "TLS files are not usable", "stay in force")
	if got := serial(t, address, ca.client(false)); got != second {
		t.Errorf("serial %d after a bad pair, want %d", got, second)
	}
	mustSay(t, a.reload(s.yaml()), "served anew")
	eventually(t, "it serves in clear text again", func() bool { return a.get("/high") == 200 })

	missing := strings.Replace(secure, ca.path("cert.pem"), "/nowhere/cert.pem", 1)
	mustSay(t, a.reload(missing), "listeners stay as they are", "listeners[0].tls", "may read")
}
