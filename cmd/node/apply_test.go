package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"subak/internal/api"
)

// changing serves the routes of a change: the answer to apply, then one answer
// after the other to questions for the progress.
func changing(t *testing.T, status int, made any, then ...api.Change) (address string, asked *api.ChangeRequest) {
	t.Helper()
	asked = &api.ChangeRequest{}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, v any) {
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("POST /v1/apply", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Error(err)
		}
		reply(w, status, made)
	})
	mux.HandleFunc("GET /v1/change", func(w http.ResponseWriter, _ *http.Request) {
		now := then[0]
		if len(then) > 1 {
			then = then[1:]
		}
		reply(w, 200, now)
	})
	mux.HandleFunc("POST /v1/promote", func(w http.ResponseWriter, _ *http.Request) { reply(w, status, made) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), asked
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "budgets.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func spreading(acked int) api.Change {
	c := api.Change{
		Epoch: "4-00000000000000aa", Parent: "3-0000000000000099", State: api.ChangeSpreading, Reason: "waits for sin",
		Plan:     []string{"budget origin: limit 20,000/s -> 10,000/s", "must acknowledge: ams, fra, sin"},
		Warnings: []string{"listener edge of this node: rules[0] sends to shop/high, which is not in the file"},
		Seconds:  1.2,
	}
	for i, name := range []string{"ams", "fra", "sin"} {
		n := api.ChangeNode{Name: name, Adopted: true, Acked: i < acked, InForce: acked == 3, AgeMillis: 20}
		if i >= acked {
			n.Waits = "lends more than its new base"
		}
		c.Nodes = append(c.Nodes, n)
	}
	if acked == 3 {
		c.State, c.Reason = api.ChangeInForce, ""
	}
	return c
}

func TestApplyShowsThePlanAndFollowsTheChangeIntoForce(t *testing.T) {
	address, asked := changing(t, 200, spreading(1), spreading(2), spreading(2), spreading(3))
	got := subak(t, nil, "apply", "-f", file(t, "budgets: []\n"), "--canary", "fra", "--trial", "1m", "--wait", "--admin", address)
	if got.code != exitOK || got.err != "" {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	var shown []string
	for line := range strings.Lines(got.out) { // the times are the machine's
		if at := strings.Index(line, "epoch 4-"); at > 0 && strings.HasPrefix(line, " ") {
			line = "TIME  " + line[at:]
		}
		shown = append(shown, line)
	}
	golden(t, "apply", strings.Join(shown, ""))
	if asked.Canary != "fra" || asked.CanarySeconds != 60 || asked.File != "budgets: []\n" || !strings.HasSuffix(asked.Name, "budgets.yaml") {
		t.Errorf("the node was asked for %+v", asked)
	}
	address, _ = changing(t, 200, spreading(1), spreading(3))
	got = subak(t, nil, "apply", "-f", file(t, "budgets: []\n"), "--wait", "--json", "--admin", address)
	var c api.Change
	if err := json.Unmarshal([]byte(got.out), &c); err != nil || c.State != api.ChangeInForce || len(c.Plan) != 2 || len(c.Warnings) != 1 {
		t.Errorf("--json: %v\n%s", err, got.out)
	}
}

func TestForgetStatesThatNodesAreDead(t *testing.T) {
	address, asked := changing(t, 200, spreading(3))
	got := subak(t, nil, "forget", "sin", "lon", "--admin", address)
	if got.code != exitOK || fmt.Sprint(asked.Forget) != "[sin lon]" || asked.File != "" {
		t.Errorf("%+v, asked %+v", got, asked)
	}
}

func TestChangeSaysForWhomItWaits(t *testing.T) {
	address, _ := changing(t, 200, nil, spreading(1))
	got := subak(t, nil, "change", "--admin", address)
	if got.code != exitOK || got.err != "" {
		t.Errorf("%+v", got)
	}
	golden(t, "change", got.out)
}

func TestAChangeThatDoesNotComeIntoForceFailsWithTheReason(t *testing.T) {
	lost := api.Change{Epoch: "4-00000000000000aa", State: api.ChangeSuperseded, Reason: "epoch 4-00000000000000bb won", Plan: []string{"it differs in budget origin: limit 1/s -> 2/s"}}
	none := api.Change{Epoch: "3-0000000000000099", State: api.ChangeNone}
	for name, tc := range map[string]struct {
		status int
		made   any
		then   api.Change
		code   int
		says   []string
	}{
		"faults":        {400, api.Error{Error: "invalid change:\nf.yaml:3: budgets[0].limit: is missing; mend: write it\nf.yaml:9: x: y; mend: z"}, none, exitBroken, []string{"f.yaml:3: budgets[0].limit", "mend: write it", "f.yaml:9"}},
		"conflict":      {409, api.Error{Error: "change refused: it is older; mend: say --revert"}, none, exitRefused, []string{"it is older", "  mend: say --revert"}},
		"busy":          {503, api.Error{Error: "the decision loop does not answer"}, none, exitRefused, []string{"does not answer"}},
		"another won":   {200, spreading(1), lost, exitRefused, []string{"lost against another change", "4-00000000000000bb won", "mend: look at"}},
		"not in time":   {200, spreading(1), spreading(1), exitBroken, []string{"not in force yet: waits for sin", "mend: it goes on by itself"}},
		"nothing to do": {200, none, none, exitOK, nil},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := changing(t, tc.status, tc.made, tc.then)
			got := subak(t, nil, "apply", "-f", file(t, "budgets: []\n"), "--wait", "--wait-max", "1ms", "--admin", address)
			if got.code != tc.code {
				t.Errorf("exit code %d, want %d\n%s%s", got.code, tc.code, got.out, got.err)
			}
			for _, want := range tc.says {
				if !strings.Contains(got.err, want) {
					t.Errorf("want %q in\n%s", want, got.err)
				}
			}
		})
	}
}

func TestApplyNeedsAFileThatCanBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"none":     {nil, exitUsage, "no file is named"},
		"absent":   {[]string{"-f", "/nonexistent"}, exitBroken, "/nonexistent"},
		"empty":    {[]string{"-f", file(t, "")}, exitBroken, "is empty"},
		"too long": {[]string{"-f", file(t, strings.Repeat("#", fileMax+1))}, exitBroken, "larger than 1 MiB"},
	} {
		got := subak(t, nil, append([]string{"apply"}, tc.args...)...)
		if got.code != tc.code || !strings.Contains(got.err, tc.says) || !strings.Contains(got.err, "mend: ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
