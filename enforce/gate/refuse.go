package gate

import (
	"fmt"
	"net/http"
	"time"

	"subak/enforce/answer"
)

// Fields of our own.
const (
	statusField   = "X-Subak-Status"   // the status a proxy should give the client (lesson O24)
	decisionField = "X-Subak-Decision" // debug: why
)

// refuse answers a request that was not admitted.
func (g *Gate) refuse(w http.ResponseWriter, d decision) {
	if d.fault != "" {
		answer.Problem(w, http.StatusBadRequest, d.fault)
		return
	}
	if d.to == nil {
		answer.Problem(w, http.StatusForbidden, "no rule matches this request")
		return
	}
	g.debug(w.Header(), d)
	d.to.words.Refuse(w, g.refusal(d))
}

// refusal gathers what a refused client is told.
func (g *Gate) refusal(d decision) answer.Refusal {
	r := answer.Refusal{Wait: d.to.limiter.RetryAfterRequest(d.now, d.request), Fields: g.cfg.Headers}
	if most := uint64(g.cfg.RetryJitter / time.Second); most > 0 && g.deps.Rand != nil {
		r.Jitter = time.Duration(g.deps.Rand()%(most+1)) * time.Second
	}
	if r.Fields != HeadersOff {
		r.Quota = d.to.limiter.QuotaRequest(d.now, d.request)
	}
	return r
}

// quota writes the quota fields of a request that was admitted.
func (g *Gate) quota(h http.Header, d decision) {
	if g.cfg.Headers != HeadersOff && d.to != nil {
		d.to.words.Admit(h, g.cfg.Headers, d.to.limiter.QuotaRequest(d.now, d.request))
	}
}

func (g *Gate) debug(h http.Header, d decision) {
	if !g.cfg.Debug {
		return
	}
	if d.to == nil {
		h[decisionField] = []string{"reason=unknown"}
		return
	}
	h[decisionField] = []string{fmt.Sprintf("budget=%q, class=%q, cost=%d, reason=%s, from=%d",
		d.to.budget, d.to.class, d.cost, d.verdict.Reason, d.verdict.From)}
}
