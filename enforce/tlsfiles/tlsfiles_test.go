package tlsfiles_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"subak/enforce/tlsfiles"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// issue returns a certificate and key for localhost, in PEM.
func (a *authority) issue(t testing.TB, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", der), pemOf("EC PRIVATE KEY", kder)
}

func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// served returns the name in the certificate that a handshake shows.
func served(t testing.TB, f *tlsfiles.Files, client *tls.Config) (string, error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() {
		s := tls.Server(b, f.TLS())
		if s.Handshake() == nil {
			_, _ = io.WriteString(s, "x")
		}
		b.Close()
	}()
	client.InsecureSkipVerify = true
	client.ServerName = "localhost"
	c := tls.Client(a, client)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // client certificates are judged after the handshake
		return "", err
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestNewFilesAreTakenAndBadOnesLeaveTheOldInForce(t *testing.T) {
	ca := newAuthority(t, "ca")
	dir := t.TempDir()
	cert1, key1 := ca.issue(t, "one")
	cert2, key2 := ca.issue(t, "two")
	cfg := tlsfiles.Config{CertFile: write(t, filepath.Join(dir, "cert"), cert1), KeyFile: write(t, filepath.Join(dir, "key"), key1)}
	f, err := tlsfiles.Open(cfg, "h2")
	if err != nil {
		t.Fatal(err)
	}
	want := func(when, name string, reloads, failures int64) {
		t.Helper()
		if got, err := served(t, f, &tls.Config{}); err != nil || got != name {
			t.Errorf("%s: %q, %v; want %q", when, got, err, name)
		}
		if r, fl := f.Counts(); r != reloads || fl != failures {
			t.Errorf("%s: %d reloads and %d failures, want %d and %d", when, r, fl, reloads, failures)
		}
	}
	reload := func(changed, ok bool) {
		t.Helper()
		if c, err := f.Reload(); c != changed || (err == nil) != ok {
			t.Errorf("changed %v, %v", c, err)
		}
	}
	want("at first", "one", 0, 0)
	reload(false, true)
	write(t, cfg.CertFile, cert2)
	reload(false, false)
	want("a certificate without its key", "one", 0, 1)
	write(t, cfg.KeyFile, key2)
	reload(true, true)
	want("both", "two", 1, 1)
	write(t, cfg.CertFile, []byte("half a cert"))
	reload(false, false)
	want("garbage", "two", 1, 2)
	os.Remove(cfg.CertFile)
	reload(false, false)
	want("gone", "two", 1, 3)
	write(t, cfg.CertFile, cert2)
	reload(false, true)
	want("back", "two", 1, 3)
}

func TestClientsNeedACertificateOfTheAuthorityInForce(t *testing.T) {
	ca, clients, others := newAuthority(t, "ca"), newAuthority(t, "clients"), newAuthority(t, "others")
	dir := t.TempDir()
	cert, key := ca.issue(t, "server")
	cfg := tlsfiles.Config{
		CertFile: write(t, filepath.Join(dir, "cert"), cert), KeyFile: write(t, filepath.Join(dir, "key"), key),
		ClientCAFile: write(t, filepath.Join(dir, "ca"), pemOf("CERTIFICATE", clients.cert.Raw)), MinVersion: tls.VersionTLS13,
	}
	f, err := tlsfiles.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	of := func(a *authority) *tls.Config {
		c, k := a.issue(t, "client")
		pair, err := tls.X509KeyPair(c, k)
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, ClientSessionCache: tls.NewLRUClientSessionCache(4)}
	}
	good, bad := of(clients), of(others)
	for name, tc := range map[string]struct {
		client *tls.Config
		ok     bool
	}{
		"its own": {good, true}, "again": {good, true}, "another's": {bad, false}, "none": {&tls.Config{}, false},
		"an old protocol": {&tls.Config{Certificates: good.Certificates, MaxVersion: tls.VersionTLS12}, false},
	} {
		if _, err := served(t, f, tc.client); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(t, cfg.ClientCAFile, pemOf("CERTIFICATE", others.cert.Raw))
	if changed, err := f.Reload(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if _, err := served(t, f, good); err == nil {
		t.Error("a session of before got in by resumption")
	}
	if _, err := served(t, f, bad); err != nil {
		t.Error(err)
	}
}

func TestWatchTakesFilesThatChangeAndSaysSoOnce(t *testing.T) {
	ca := newAuthority(t, "ca")
	dir := t.TempDir()
	cert1, key1 := ca.issue(t, "one")
	cert2, key2 := ca.issue(t, "two")
	synctest.Test(t, func(t *testing.T) {
		cfg := tlsfiles.Config{CertFile: write(t, filepath.Join(dir, "cert"), cert1), KeyFile: write(t, filepath.Join(dir, "key"), key1)}
		f, err := tlsfiles.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var logged strings.Builder
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Watch(ctx, slog.New(slog.NewTextHandler(&logged, nil)))
		}()
		write(t, cfg.CertFile, cert2)
		time.Sleep(5*tlsfiles.Poll + 1)
		synctest.Wait()
		if n := strings.Count(logged.String(), "not usable"); n != 1 {
			t.Errorf("%d lines of one fault: %s", n, logged.String())
		}
		write(t, cfg.KeyFile, key2)
		time.Sleep(tlsfiles.Poll)
		synctest.Wait()
		if r, fl := f.Counts(); r != 1 || fl != 5 || !strings.Contains(logged.String(), "reloaded") {
			t.Errorf("%d reloads, %d failures: %s", r, fl, logged.String())
		}
		cancel()
		<-done
	})
}

func TestFaultsAreFoundBeforeAnythingIsServed(t *testing.T) {
	dir := t.TempDir()
	for name, cfg := range map[string]tlsfiles.Config{
		"no files":        {},
		"no key":          {CertFile: "x"},
		"missing":         {CertFile: filepath.Join(dir, "x"), KeyFile: filepath.Join(dir, "y")},
		"an old protocol": {CertFile: "x", KeyFile: "y", MinVersion: tls.VersionTLS11},
	} {
		if _, err := tlsfiles.Open(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ca := newAuthority(t, "ca")
	cert, key := ca.issue(t, "one")
	cfg := tlsfiles.Config{
		CertFile: write(t, filepath.Join(dir, "c"), cert), KeyFile: write(t, filepath.Join(dir, "k"), key),
		ClientCAFile: write(t, filepath.Join(dir, "ca"), []byte("nothing")),
	}
	if _, err := tlsfiles.Open(cfg); err == nil {
		t.Error("no authority in the file: no error, and so no client would be asked")
	}
}
