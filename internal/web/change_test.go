package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"subak/internal/api"
)

// post sends a body to a server without a token.
func post(t *testing.T, s *Server, path string, body []byte) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post("http://"+s.Addr()+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, text.String()
}

func TestAChangeReachesTheNodeWithAFileOfTheLargestSize(t *testing.T) {
	b := &scripted{scene: fiveCities()}
	s := serve(t, Config{}, b)
	file := strings.Repeat("\x01", 600_000) // six bytes each in JSON
	body, err := json.Marshal(api.ChangeRequest{Name: "f.yaml", File: file, Canary: "ams", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	status, text := post(t, s, "/v1/apply", body)
	var c api.Change
	if json.Unmarshal([]byte(text), &c) != nil || status != 200 || c.Epoch == "" || c.State != api.ChangeSpreading {
		t.Errorf("%d %.200s", status, text)
	}
	if len(b.changes) != 1 || b.changes[0].Canary != "ams" || len(b.changes[0].File) != 600_000 || !b.changes[0].DryRun {
		t.Errorf("the node was asked for something else")
	}
}

func TestABodyThatIsNoChangeIsRefusedAndChangesNothing(t *testing.T) {
	b := &scripted{scene: fiveCities()}
	s := serve(t, Config{}, b)
	for name, tc := range map[string]struct {
		body   string
		status int
	}{
		"empty":         {"", 400},
		"no JSON":       {"limit: 5", 400},
		"unknown field": {`{"fil":"x"}`, 400},
		"wrong type":    {`{"file":5}`, 400},
		"null":          {"null", 400},
		"a list":        {"[]", 400},
		"two":           {"{} {}", 400},
		"a tail":        {"{}]", 400},
		"too large":     {`{"file":"` + strings.Repeat("a", changeBytesMax) + `"}`, 413},
	} {
		status, text := post(t, s, "/v1/apply", []byte(tc.body))
		if status != tc.status || !strings.Contains(refusalText(t, text), "subak apply") {
			t.Errorf("%s: %d %.200s, want %d", name, status, text, tc.status)
		}
	}
	if len(b.changes) != 0 {
		t.Errorf("the node was asked for %d changes", len(b.changes))
	}
}

func TestTheAnswerToAChangeSaysWhatTheCallerCanDo(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
	}{
		{nil, 200},
		{fmt.Errorf("%w: line 3", ErrInvalid), 400},
		{fmt.Errorf("%w: epoch 3 is under way", ErrConflict), 409},
		{fmt.Errorf("%w: no such epoch", ErrNotFound), 404},
		{errors.New("busy"), 503},
	} {
		b := &scripted{scene: fiveCities(), changeErr: tc.err}
		s := serve(t, Config{}, b)
		for _, path := range []string{"/v1/apply", "/v1/promote", "/v1/abandon"} {
			if status, text := post(t, s, path, []byte(`{}`)); status != tc.status {
				t.Errorf("%s, %v: %d %s, want %d", path, tc.err, status, text, tc.status)
			}
		}
		if resp, text := call(t, s, "GET", "/v1/change?epoch=2-aa"); resp.StatusCode != tc.status || tc.err == nil && !strings.Contains(text, "2-aa") {
			t.Errorf("progress, %v: %d %s, want %d", tc.err, resp.StatusCode, text, tc.status)
		}
	}
}
