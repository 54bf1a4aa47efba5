package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"subak/internal/api"
)

// route is one line of the API: who may call it, how, and what answers.
type route struct {
	path   string
	method string // GET includes HEAD
	scope  scope
	serve  http.HandlerFunc
}

// routes is the whole interface.
func (s *Server) routes() []route {
	list := []route{
		{"/{$}", http.MethodGet, public, serveFile("index.html")},
		{"/ui/{file}", http.MethodGet, public, func(w http.ResponseWriter, r *http.Request) { serveFile(r.PathValue("file"))(w, r) }},
		{"/v1/status", http.MethodGet, read, s.serveStatus},
		{"/v1/shares", http.MethodGet, read, s.serveShares},
		{"/v1/events", http.MethodGet, read, s.serveEvents},
		{"/v1/history", http.MethodGet, read, s.serveHistory},
		{"/v1/explain", http.MethodGet, read, s.serveExplain},
		{"/v1/freeze", http.MethodPost, write, s.serveFreeze(true)},
		{"/v1/unfreeze", http.MethodPost, write, s.serveFreeze(false)},
		{"/v1/reach", http.MethodPost, write, s.serveReach},
		{"/v1/change", http.MethodGet, read, s.serveProgress},
		{applyPath, http.MethodPost, write, s.serveChange},
		{"/v1/promote", http.MethodPost, write, s.serveEndTrial(true)},
		{"/v1/abandon", http.MethodPost, write, s.serveEndTrial(false)},
		{"/healthz", http.MethodGet, probe, serveProbe(s.backend.Healthy)},
		{"/readyz", http.MethodGet, probe, serveProbe(s.backend.Ready)},
		{"/debug/pprof/", http.MethodGet, write, profile(pprof.Index)},
		{"/debug/pprof/cmdline", http.MethodGet, write, pprof.Cmdline},
		{"/debug/pprof/symbol", http.MethodGet, write, pprof.Symbol},
		{"/debug/pprof/profile", http.MethodGet, write, profile(pprof.Profile)},
		{"/debug/pprof/trace", http.MethodGet, write, profile(pprof.Trace)},
		{"/", http.MethodGet, public, serveNothing},
	}
	if s.cfg.Gatherer != nil {
		metrics := promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
		list = append(list, route{"/metrics", http.MethodGet, read, metrics.ServeHTTP})
	}
	return list
}

// handler is the mux with the guard in front of every route.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.path, s.guarded(r))
	}
	return mux
}

// guarded wraps one route: security headers, the guard, the method.
func (s *Server) guarded(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		if no := s.guard.check(r, rt.scope); no != nil {
			s.metrics.refused.WithLabelValues(no.reason).Inc()
			if no.status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="subak"`)
			}
			fail(w, no.status, no.text)
			return
		}
		if r.Method != rt.method && !(r.Method == http.MethodHead && rt.method == http.MethodGet) {
			w.Header().Set("Allow", rt.method)
			fail(w, http.StatusMethodNotAllowed, "use "+rt.method)
			return
		}
		most := int64(bodyBytesMax)
		if rt.path == applyPath {
			most = changeBytesMax
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		rt.serve(w, r)
	})
}

func (s *Server) serveStatus(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, s.backend.Status())
}

func (s *Server) serveShares(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, s.backend.Shares())
}

// serveReach is a POST because it makes traffic.
func (s *Server) serveReach(w http.ResponseWriter, r *http.Request) {
	found, err := s.backend.Reach(r.Context())
	switch {
	case errors.Is(err, ErrConflict):
		fail(w, http.StatusConflict, err.Error())
	case err != nil:
		fail(w, http.StatusInternalServerError, err.Error())
	default:
		reply(w, http.StatusOK, found)
	}
}

// serveHistory answers for one budget.
func (s *Server) serveHistory(w http.ResponseWriter, r *http.Request) {
	budget, ok := name(w, r, "budget")
	if !ok {
		return
	}
	past, ok := s.hub.history.of(budget)
	if !ok {
		fail(w, http.StatusNotFound, "no such budget")
		return
	}
	reply(w, http.StatusOK, past)
}

func (s *Server) serveExplain(w http.ResponseWriter, r *http.Request) {
	budget, ok1 := name(w, r, "budget")
	if !ok1 {
		return
	}
	class, ok2 := name(w, r, "class")
	if !ok2 {
		return
	}
	node, ok3 := name(w, r, "node")
	if !ok3 {
		return
	}
	if budget == "" || class == "" {
		fail(w, http.StatusBadRequest, "name a cell: ?budget=B&class=C, and &node=N unless it is this node")
		return
	}
	e, err := s.backend.Explain(budget, class, node)
	switch {
	case errors.Is(err, ErrNotFound):
		fail(w, http.StatusNotFound, err.Error())
	case err != nil:
		fail(w, http.StatusInternalServerError, err.Error())
	default:
		reply(w, http.StatusOK, e)
	}
}

func (s *Server) serveFreeze(on bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := s.backend.Freeze(on); err != nil {
			fail(w, http.StatusInternalServerError, err.Error())
			return
		}
		s.log.Warn("kill switch", "frozen", on, "from", r.RemoteAddr)
		s.hub.nudge()
		reply(w, http.StatusOK, api.Frozen{Frozen: on})
	}
}

// serveEvents streams the history once, then every snapshot. ?budget=NAME asks
// for the cells, loans and history of that budget only.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	budget, ok := name(w, r, "budget")
	if !ok {
		return
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	sub := s.hub.subscribe(budget)
	if sub == nil {
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d event streams are open already", streamsMax))
		return
	}
	defer s.hub.unsubscribe(sub)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(data []byte) bool {
		// One deadline per event: a peer that stops reading frees its place.
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err := w.Write(data)
		return err == nil && control.Flush() == nil
	}
	if !send(s.firstFrames(budget)) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case data, ok := <-sub.frames:
			if !ok || !send(data) {
				return
			}
		}
	}
}

// firstFrames is what a new stream starts with: when to reconnect, the history
// of the budget asked for (or of all), and the newest snapshot.
func (s *Server) firstFrames(budget string) []byte {
	names := []string{budget}
	if budget == "" {
		names = s.hub.history.names()
	}
	out := []byte("retry: 2000\n\n")
	for _, n := range names {
		if past, ok := s.hub.history.of(n); ok {
			out = append(out, frame("history", past.Millis[len(past.Millis)-1], past)...)
		}
	}
	millis, st := s.hub.latest()
	out = append(out, statusFrame(millis, &st, budget)...)
	return out
}

// serveProbe answers 200 or 503, with the reason as text.
func serveProbe(ask func() (bool, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		ok, reason := ask()
		status, word := http.StatusOK, "ok"
		if !ok {
			status, word = http.StatusServiceUnavailable, "not ok"
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		if reason != "" {
			word += ": " + reason
		}
		fmt.Fprintln(w, word)
	}
}

func serveNothing(w http.ResponseWriter, _ *http.Request) {
	fail(w, http.StatusNotFound, "no such page: the dashboard is at /, the figures at /v1/status")
}

// profile refuses a profile or trace longer than profileSecondsMax. The handlers
// extend the write deadline by the length themselves.
func profile(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if text := r.URL.Query().Get("seconds"); text != "" {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || !(n > 0 && n <= profileSecondsMax) {
				fail(w, http.StatusBadRequest, fmt.Sprintf("seconds must be over 0 and at most %d", profileSecondsMax))
				return
			}
		}
		next(w, r)
	}
}

// name reads a query parameter of bounded length; on failure it has answered.
func name(w http.ResponseWriter, r *http.Request, key string) (string, bool) {
	v := r.URL.Query().Get(key)
	if len(v) > nameBytesMax || strings.ContainsRune(v, 0) {
		fail(w, http.StatusBadRequest, fmt.Sprintf("%s must be a name of at most %d bytes", key, nameBytesMax))
		return "", false
	}
	return v, true
}

// reply writes value as JSON, or a 500 when it cannot be encoded.
func reply(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		status = http.StatusInternalServerError
		data, _ = json.Marshal(api.Error{Error: "encode: " + err.Error()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

func fail(w http.ResponseWriter, status int, text string) {
	reply(w, status, api.Error{Error: text})
}
