// Package tlsfiles keeps a server's certificate, key and client authorities in
// step with their files.
//
// A certificate is renewed by replacing files, seldom all at the same instant: so
// files that do not fit together are the usual state of things for a moment and
// no reason to stop. A bad new set leaves the one in force as it is, is counted,
// and is tried again at the next look. Handshakes read one pointer; a new set
// holds for handshakes that begin later. Sessions do not survive a reload, so
// that a client whose authority is gone cannot resume its way in.
//
// Files are compared by content, not by time: some tools keep times, others touch
// files they do not change. Everything is safe for concurrent use; nothing is
// started but by Watch, which runs until its context ends.
package tlsfiles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Poll is how often Watch looks at the files.
const Poll = 10 * time.Second

// fileMax bounds what is read of a file, in bytes: a bundle of client
// authorities is under 1 MB.
const fileMax = 8 << 20

// Config names the files, all PEM.
type Config struct {
	// CertFile is the server's certificate and its chain, leaf first. Required.
	CertFile string
	// KeyFile is its private key. Required.
	KeyFile string
	// ClientCAFile, if not empty, holds the authorities of which one must have
	// signed the certificate that every client then has to show.
	ClientCAFile string
	// MinVersion is the oldest protocol spoken, tls.VersionTLS12 or
	// tls.VersionTLS13; 0 means 1.2.
	MinVersion uint16
}

// Validate returns every fault that shows without reading a file.
func (c Config) Validate() error {
	var errs []error
	if c.CertFile == "" {
		errs = append(errs, errors.New("cert_file: missing"))
	}
	if c.KeyFile == "" {
		errs = append(errs, errors.New("key_file: missing"))
	}
	if v := c.MinVersion; v != 0 && v != tls.VersionTLS12 && v != tls.VersionTLS13 {
		errs = append(errs, fmt.Errorf("min_version: %#x: want TLS 1.2 or 1.3", v))
	}
	return errors.Join(errs...)
}

// Files is a set of files and the configuration made of what they last held.
type Files struct {
	cfg     Config
	protos  []string
	current atomic.Pointer[tls.Config]

	loading  sync.Mutex
	sum      [sha256.Size]byte // of the set in force, guarded by loading
	bad      [sha256.Size]byte // of the set refused last, guarded by loading
	reloads  atomic.Int64
	failures atomic.Int64
}

// Open reads the files. protos are offered by ALPN in this order, such as "h2",
// "http/1.1".
func Open(cfg Config, protos ...string) (*Files, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Files{cfg: cfg, protos: protos}
	set, sum, err := f.load()
	if err != nil {
		return nil, err
	}
	f.current.Store(set)
	f.sum = sum
	return f, nil
}

// TLS returns a server configuration that follows the files.
func (f *Files) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: f.minVersion(), NextProtos: f.protos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current.Load(), nil },
		// Some servers insist on a certificate though one is found per client.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &f.current.Load().Certificates[0], nil
		},
	}
}

// Reload looks at the files now and reports whether another set is in force. On
// an error the one of before still is.
func (f *Files) Reload() (changed bool, err error) {
	changed, _, err = f.reload()
	return changed, err
}

// reload also reports whether the fault is a new one, for the log.
func (f *Files) reload() (changed, news bool, err error) {
	f.loading.Lock()
	defer f.loading.Unlock()
	set, sum, err := f.load()
	if err != nil {
		f.failures.Add(1)
		news = sum != f.bad
		f.bad = sum
		return false, news, err
	}
	f.bad = [sha256.Size]byte{}
	if sum == f.sum {
		return false, false, nil
	}
	f.current.Store(set)
	f.sum = sum
	f.reloads.Add(1)
	return true, false, nil
}

// Counts returns how often another set was put in force, and how often one was
// refused and the one of before kept.
func (f *Files) Counts() (reloads, failures int64) { return f.reloads.Load(), f.failures.Load() }

// Expires returns the end of validity of the certificate in force.
func (f *Files) Expires() time.Time {
	leaf := f.current.Load().Certificates[0].Leaf
	return leaf.NotAfter
}

// Watch looks at the files every Poll until ctx ends. A fault is logged once, not
// at each look.
func (f *Files) Watch(ctx context.Context, log *slog.Logger) {
	t := time.NewTicker(Poll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			changed, news, err := f.reload()
			switch {
			case err != nil && news:
				log.Error("new TLS files are not usable; the ones of before stay in force", "cert_file", f.cfg.CertFile, "err", err)
			case changed:
				log.Info("TLS files reloaded", "cert_file", f.cfg.CertFile, "expires", f.Expires())
			}
		}
	}
}

// load makes a configuration of what the files hold, and a hash of that.
func (f *Files) load() (set *tls.Config, sum [sha256.Size]byte, err error) {
	var parts [3][]byte
	names := [3]string{f.cfg.CertFile, f.cfg.KeyFile, f.cfg.ClientCAFile}
	for i, name := range names {
		if name == "" {
			continue
		}
		if parts[i], err = readFile(name); err != nil {
			return nil, sha256.Sum256([]byte(err.Error())), err
		}
	}
	sum = sha256.Sum256(bytes.Join(parts[:], []byte{0}))
	cert, err := tls.X509KeyPair(parts[0], parts[1])
	if err != nil {
		return nil, sum, fmt.Errorf("certificate %s with key %s: %w", names[0], names[1], err)
	}
	set = &tls.Config{MinVersion: f.minVersion(), NextProtos: f.protos, Certificates: []tls.Certificate{cert}}
	if names[2] != "" {
		set.ClientCAs = x509.NewCertPool()
		set.ClientAuth = tls.RequireAndVerifyClientCert
		if !set.ClientCAs.AppendCertsFromPEM(parts[2]) {
			return nil, sum, fmt.Errorf("client authorities %s: no certificate in it", names[2])
		}
	}
	return set, sum, nil
}

func (f *Files) minVersion() uint16 {
	if f.cfg.MinVersion == 0 {
		return tls.VersionTLS12
	}
	return f.cfg.MinVersion
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, fileMax+1))
	if err != nil {
		return nil, err
	}
	if len(b) > fileMax {
		return nil, fmt.Errorf("%s: larger than %d bytes", name, fileMax)
	}
	return b, nil
}
