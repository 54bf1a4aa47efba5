package gate

import (
	"log/slog"
	"net/http"
	"time"
)

// NewServer returns a server for a gate: HTTP/1.1, HTTP/2 over TLS and HTTP/2 in
// clear text with prior knowledge. Reads of request heads are bounded in time and
// size; bodies and responses are not, because they may be streams.
func NewServer(addr string, h http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		Protocols:         new(http.Protocols),
	}
	if log != nil {
		s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}
