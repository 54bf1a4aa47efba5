package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"subak/internal/api"
)

// applyPath is the only route that reads a body.
const applyPath = "/v1/apply"

func (s *Server) serveChange(w http.ResponseWriter, r *http.Request) {
	var request *api.ChangeRequest // nil when the body says null
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	err := body.Decode(&request)
	if err == nil && request == nil {
		err = errors.New(`it is null where an object belongs, such as {"name": "subak.yaml", "file": "budgets: ..."}`)
	}
	if _, end := body.Token(); err == nil && !errors.Is(end, io.EOF) {
		err = errors.New("something follows the object")
	}
	if err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		fail(w, status, "the body is no change: "+err.Error()+"; send it with subak apply, or see docs/operating.md")
		return
	}
	change, err := s.backend.Change(*request)
	if err == nil && !request.DryRun && change.State != api.ChangeNone {
		s.log.Warn("change of the cluster", "epoch", change.Epoch, "state", change.State, "from", r.RemoteAddr)
		s.hub.nudge()
	}
	replyChange(w, change, err)
}

func (s *Server) serveProgress(w http.ResponseWriter, r *http.Request) {
	epoch, ok := name(w, r, "epoch")
	if !ok {
		return
	}
	change, err := s.backend.Progress(epoch)
	replyChange(w, change, err)
}

func (s *Server) serveEndTrial(promote bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		change, err := s.backend.EndTrial(promote)
		if err == nil {
			s.log.Warn("trial of a change ended", "epoch", change.Epoch, "promoted", promote, "from", r.RemoteAddr)
			s.hub.nudge()
		}
		replyChange(w, change, err)
	}
}

func replyChange(w http.ResponseWriter, change api.Change, err error) {
	switch {
	case err == nil:
		reply(w, http.StatusOK, change)
	case errors.Is(err, ErrNotFound):
		fail(w, http.StatusNotFound, err.Error())
	case errors.Is(err, ErrInvalid):
		fail(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, ErrConflict):
		fail(w, http.StatusConflict, err.Error())
	default:
		fail(w, http.StatusServiceUnavailable, err.Error())
	}
}
