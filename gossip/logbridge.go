package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// logBridge turns memberlist's text log into slog records: level by its
// prefix, a bounded number of kinds, at most one line per kind and period, and a
// counter for every warning and error. memberlist tells of strangers with
// another label or key only here, so this is also where those are counted.
type logBridge struct {
	log     *slog.Logger
	metrics *metrics
	limit   *logLimit
}

// reportKind is how one sort of memberlist's messages is treated.
type reportKind struct {
	text   string // what such a message contains
	kind   string
	refuse string // reason for the counter of refusals, if it is one
	hint   string // what a person can do about it
	level  slog.Level
	every  time.Duration
}

const (
	reportEvery = 10 * time.Second
	// refuseEvery keeps a stranger that knocks all day down to few lines.
	refuseEvery = 10 * time.Minute
)

const keyHint = "a node with another gossip key, or none, is talking to this one"

// reportKinds is searched in order; the first match decides.
func reportKinds() []reportKind {
	w, d := slog.LevelWarn, slog.LevelDebug
	return []reportKind{
		{"unacceptable label", "label", reasonLabel, "a node of another cluster is talking to this one", w, refuseEvery},
		{"Decrypt packet failed", "key", reasonKey, keyHint, w, refuseEvery},
		{"o installed keys could decrypt", "key", reasonKey, keyHint, w, refuseEvery},
		{"encryption is configured but", "key", reasonKey, keyHint, w, refuseEvery},
		{"remote state is encrypted and", "key", reasonKey, keyHint, w, refuseEvery},
		// These two are logged and counted by our own delegates.
		{"Conflicting address", "conflict", "", "", d, reportEvery},
		{"gnoring alive message for", "refused_alive", "", "", d, reportEvery},
		{"handler queue full", "handoff_full", "", "memberlist drops messages: this process is starved of CPU", w, reportEvery},
		{"Too many pending push/pull", "busy", "", "", w, reportEvery},
		{"invalid checksum", "malformed", "", "", w, reportEvery},
		{"ailed to decode", "malformed", "", "", w, reportEvery},
		{"ecompress", "malformed", "", "", w, reportEvery},
		{"not supported", "malformed", "", "", w, reportEvery},
		{"label header", "malformed", "", "", w, reportEvery},
		{"truncated messages", "malformed", "", "", w, reportEvery},
		{"ailed to receive", "receive_failed", "", "", w, reportEvery},
		{"ailed to send", "send_failed", "", "", w, reportEvery},
		{"Refuting", "refute", "", "peers believed this node dead or suspect", slog.LevelInfo, reportEvery},
		{"Push/Pull with", "pushpull_failed", "", "", slog.LevelInfo, reportEvery},
		{"fallback TCP ping", "ping_failed", "", "", slog.LevelInfo, reportEvery},
		{"over TCP but UDP probes failed", "udp_blocked", "", "TCP works but UDP does not: check firewalls", w, reportEvery},
		{"without encryption", "unencrypted", "", "", d, reportEvery}, // New says so itself
		{"", "other", "", "", w, reportEvery},
	}
}

// Write implements io.Writer for a log.Logger without prefix and flags.
func (b *logBridge) Write(p []byte) (int, error) {
	level, text := splitLevel(p)
	if level < slog.LevelWarn { // chatter: failure detection, connections
		if b.log.Enabled(context.Background(), slog.LevelDebug) {
			b.log.Debug("memberlist: " + text)
		}
		return len(p), nil
	}
	for _, k := range reportKinds() {
		if strings.Contains(text, k.text) {
			b.report(&k, text)
			break
		}
	}
	return len(p), nil
}

func (b *logBridge) report(k *reportKind, text string) {
	b.metrics.reports.WithLabelValues(k.kind).Inc()
	if k.refuse != "" {
		b.metrics.refused.WithLabelValues(k.refuse).Inc()
	}
	ok, suppressed := b.limit.allow(k.kind, k.every)
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("kind", k.kind), slog.String("text", text)}
	if k.hint != "" {
		attrs = append(attrs, slog.String("hint", k.hint))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	b.log.LogAttrs(context.Background(), k.level, "memberlist reports", attrs...)
}

// splitLevel reads "[LEVEL] memberlist: text". Lines without a level are warnings.
func splitLevel(p []byte) (slog.Level, string) {
	const maxLine = 512 // foreign strings may be quoted in it
	p = bytes.TrimSpace(p)
	level := slog.LevelWarn
	if len(p) > 0 && p[0] == '[' {
		if end := bytes.IndexByte(p, ']'); end > 0 {
			switch string(p[1:end]) {
			case "DEBUG", "TRACE":
				level = slog.LevelDebug
			case "INFO":
				level = slog.LevelInfo
			}
			p = bytes.TrimSpace(p[end+1:])
		}
	}
	p = bytes.TrimPrefix(p, []byte("memberlist: "))
	return level, strings.ToValidUTF8(string(p[:min(len(p), maxLine)]), "?")
}

// logLimit lets through one line per key and period. Keys beyond its bound
// share one.
type logLimit struct {
	mu   sync.Mutex
	last map[string]*limited
}

type limited struct {
	at         time.Time
	suppressed int
}

const maxLimitKeys = 512

func newLogLimit() *logLimit { return &logLimit{last: make(map[string]*limited)} }

// allow says whether to log now, and how many lines were kept back before.
func (l *logLimit) allow(key string, every time.Duration) (ok bool, suppressed int) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.last[key]
	if e == nil {
		if len(l.last) >= maxLimitKeys {
			key = "overflow"
			if e = l.last[key]; e == nil {
				e = &limited{}
				l.last[key] = e
			}
		} else {
			e = &limited{}
			l.last[key] = e
		}
	}
	if !e.at.IsZero() && now.Sub(e.at) < every {
		e.suppressed++
		return false, 0
	}
	suppressed = e.suppressed
	*e = limited{at: now}
	return true, suppressed
}
