package gate

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"subak/enforce/tlsfiles"
)

// Server serves one listener: HTTP/1.1, HTTP/2 over TLS and HTTP/2 in clear text
// with prior knowledge.
type Server struct {
	http  *http.Server
	files *tlsfiles.Files // nil without TLS
}

// NewServer returns a server for h within cfg's Limits and with its TLS, the
// files of which it reads. Of cfg it uses nothing else.
func NewServer(cfg Config, h http.Handler, log *slog.Logger) (*Server, error) {
	lim := cfg.Limits.filled()
	s := &Server{http: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: lim.HeaderTimeout,
		IdleTimeout:       lim.IdleTimeout,
		MaxHeaderBytes:    lim.HeaderBytes,
		Protocols:         new(http.Protocols),
	}}
	if log != nil {
		s.http.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	if cfg.TLS != nil {
		files, err := tlsfiles.Open(*cfg.TLS, "h2", "http/1.1")
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		s.files = files
		s.http.TLSConfig = files.TLS()
	}
	return s, nil
}

// Serve accepts from ln until Shutdown or Close, and then returns
// http.ErrServerClosed.
func (s *Server) Serve(ln net.Listener) error {
	if s.files != nil {
		return s.http.ServeTLS(ln, "", "")
	}
	return s.http.Serve(ln)
}

// Shutdown accepts nothing more, tells clients (Connection: close, GOAWAY), and
// waits until ctx ends for what is under way, WebSockets included; it then
// returns ctx's error and leaves them to Close.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close cuts everything off.
func (s *Server) Close() error { return s.http.Close() }

// ReloadTLS looks at the certificate's files now, not only at the next poll. On an
// error the ones of before stay in force. Without TLS it does nothing.
func (s *Server) ReloadTLS() error {
	if s.files == nil {
		return nil
	}
	_, err := s.files.Reload()
	return err
}
