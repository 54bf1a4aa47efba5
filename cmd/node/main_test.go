package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	stdlog "log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"subak/internal/api"
	"subak/internal/config"
)

func TestMain(m *testing.M) {
	update = flag.Bool("update", false, "write the golden files anew")
	goleak.VerifyTestMain(m)
}

var update *bool

// result is what one command line did.
type result struct {
	code     int
	out, err string
}

// subak runs one command line in this process.
func subak(t *testing.T, env []string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{env: env, out: &out, err: &errs}
	code := p.main(t.Context(), args)
	return result{code, out.String(), errs.String()}
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s (%v): got\n%s\nwant\n%s", file, err, got, want)
	}
}

// healthy is a node in the best of states.
func healthy() api.Status {
	return api.Status{
		Node: "ams", Cluster: "edge", Version: "1.2.3", Uptime: 11520, Ready: true, Reason: "joined, base in force",
		Join: api.Joined, Proved: true, Epoch: api.Epoch{Version: 1, Hash: "a1b2c3d4e5f60718", Acked: true, Active: true},
		Digests: 1,
		Members: []api.Member{
			{Name: "ams", Address: "10.0.0.1:7946", Self: true, Listed: true, Weight: 55, Gossip: "alive", Live: true, RTTMillis: -1, Digest: "0a", Agrees: true},
			{Name: "fra", Address: "10.0.0.2:7946", Listed: true, Weight: 80, Gossip: "alive", Live: true, AgeMillis: 112.4, RTTMillis: 6.53, Digest: "0a", Agrees: true},
			{Name: "sin", Address: "10.0.0.3:7946", Listed: true, Weight: 30, Gossip: "alive", Live: true, AgeMillis: 187, RTTMillis: 162, Digest: "0a", Agrees: true},
		},
		Budgets: []api.Budget{{
			Name: "origin", Unit: "/s", Limit: 20000, BurstSeconds: 1, Mode: "pool-first",
			Base: 6666.666667, Ceiling: 6666.666667, Share: 9120.5, Target: 9120.5, Borrow: 2453.833333,
			SumDemand: 31204, SumShare: 20000,
			Classes: []api.Class{
				{Name: "confirmed", Reservation: 12000, Demand: 4210, Target: 4210, Share: 4210, Offered: 1234567, Admitted: 1234500, Refused: 67},
				{Name: "uncleared", Reservation: 8000, Demand: 22000, Target: 4910.5, Share: 4910.5, Offered: 5000000, Admitted: 1000000, Refused: 4000000, RefusedRate: 17089},
			},
		}},
		Dropped: map[string]uint64{"queue full": 0},
	}
}

// troubled is a node that an operator is woken up for.
func troubled() api.Status {
	s := healthy()
	s.Ready, s.Reason, s.Join = false, "no base in force", api.LostPeers
	s.Quarantine, s.Proved, s.Frozen = 2.34, false, true
	s.Epoch.Active, s.Epoch.Acked = false, false
	s.Digests = 2
	s.Dropped = map[string]uint64{"wrong key": 1204, "queue full": 3}
	s.Members[1].Agrees, s.Members[1].Digest = false, "0b"
	s.Members[1].Clock = &api.Clock{LowPPM: 19_500, HighPPM: 21_000, Verdict: "fast"}
	s.Alarms = []api.Alarm{{Kind: api.AlarmClock, Peer: "fra", Words: "the clock of fra runs fast; mend: that clock"}, {Kind: api.AlarmDisk, Words: "cannot save; mend: the disk"}}
	s.Members[2].Live, s.Members[2].Gossip, s.Members[2].AgeMillis = false, "dead", 93_000
	s.Members = append(s.Members,
		api.Member{Name: "lab", Address: "10.9.9.9:7946", Gossip: "alive", AgeMillis: -1, RTTMillis: -1, Refused: "other cluster\x1b[2J"})
	b := &s.Budgets[0]
	b.Ceiling, b.Share, b.Borrow, b.Lent, b.Shadow = 0, 0, 0, 0, true
	s.Budgets = append(s.Budgets, api.Budget{
		Name: "egress", Unit: "B/s", Limit: 12.5e6, BurstSeconds: 0.25, Mode: "paper", Base: 4e6, Ceiling: 4e6, Share: 3e6, Lent: 1e6,
		SumDemand: 2.25e6, SumShare: 12.5e6,
		Classes: []api.Class{{Name: "batch", Reservation: 12.5e6, Demand: 0.3, Target: 3e6, Share: 3e6}},
	})
	return s
}

// joining is a node that remembers nothing, a moment after its start.
func joining() api.Status {
	s := healthy()
	s.Provisional, s.Ready, s.Reason = true, false, "no epoch yet: this node remembers none, and peers are being asked"
	s.Join, s.Proved, s.Quarantine, s.Epoch = api.NeverJoined, false, 3, api.Epoch{}
	for i := range s.Members[1:] {
		s.Members[1+i].Live, s.Members[1+i].AgeMillis = false, -1
	}
	b := &s.Budgets[0]
	b.Ceiling, b.Share, b.Target, b.Borrow, b.SumShare, b.SumDemand, b.Classes = 0, 0, 0, 0, 0, 0, nil
	return s
}

// strayed is a node whose file is not what is in force.
func strayed() api.Status {
	s := healthy()
	s.FileDiffers = []string{"node ams: weight 55 -> 60", "node fra: removed (was weight 80)", "3", "4", "5", "6", "7"}
	s.Members = append(s.Members, api.Member{Name: "lhr", Address: "10.0.0.4:7946", Gossip: "alive", AgeMillis: -1, RTTMillis: 12, Provisional: true})
	return s
}

// underWay is a node that waits for others to take an epoch up.
func underWay() api.Status {
	s := healthy()
	s.Epoch = api.Epoch{Version: 4, Hash: "b1b2c3d4e5f60718", Acked: true}
	s.Reason = "serving on the ceiling of the epoch before: the present one is not in force everywhere yet"
	s.Change = "epoch 4-b1b2c3d4e5f60718 is not in force here yet; it waits for sin"
	return s
}

func explanation() api.Explanation {
	return api.Explanation{
		Budget: "origin", Class: "uncleared", Node: "ams", Demand: 22000, Base: 2666.666667, Kept: 2666.666667, Level1: 1500, Borrowed: 743.833333,
		Target: 4910.5, Share: 4910.5,
		Words: []string{"uncleared at ams asked for 22000/s and got 4910.5/s.", "It got no more because all unused base is taken."},
	}
}

// serve serves the admin interface with fixed answers and notes what was asked.
func serve(t *testing.T, status func() api.Status) (address string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	mux := http.NewServeMux()
	answer := func(pattern string, value func(*http.Request) (int, any)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			*asked = append(*asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization")))
			code, v := value(r)
			w.WriteHeader(code)
			if err := json.NewEncoder(w).Encode(v); err != nil {
				t.Error(err)
			}
		})
	}
	answer("GET /v1/status", func(*http.Request) (int, any) { return 200, status() })
	answer("GET /v1/explain", func(r *http.Request) (int, any) {
		if b := r.URL.Query().Get("budget"); b != "origin" {
			return 404, api.Error{Error: fmt.Sprintf("there is no budget %q", b)}
		}
		return 200, explanation()
	})
	answer("POST /v1/freeze", func(r *http.Request) (int, any) {
		if r.Header.Get("Authorization") != "Bearer 0123456789abcdef" {
			return 401, api.Error{Error: "token missing or wrong"}
		}
		return 200, struct{}{}
	})
	answer("POST /v1/unfreeze", func(*http.Request) (int, any) { return 200, struct{}{} })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), asked
}

func TestWhatOperatorsRead(t *testing.T) {
	over := func() api.Status {
		s := healthy()
		s.Budgets[0].SumShare = 20500
		return s
	}
	cases := []struct {
		name   string
		status func() api.Status
		args   []string
		code   int
	}{
		{"status-healthy", healthy, []string{"status"}, exitOK},
		{"status-troubled", troubled, []string{"status"}, exitNotReady},
		{"status-over", over, []string{"status"}, exitBroken},
		{"status-joining", joining, []string{"status"}, exitNotReady},
		{"status-strayed", strayed, []string{"status"}, exitOK},
		{"status-change", underWay, []string{"status"}, exitOK},
		{"members-strayed", strayed, []string{"members"}, exitOK},
		{"members-healthy", healthy, []string{"members"}, exitOK},
		{"members-troubled", troubled, []string{"members"}, exitOK},
		{"explain", healthy, []string{"explain", "origin", "uncleared"}, exitOK},
		{"unfreeze", healthy, []string{"unfreeze"}, exitOK},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			address, _ := serve(t, tc.status)
			got := subak(t, nil, append(tc.args, "--admin", address)...)
			if got.code != tc.code || got.err != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.err)
			}
			golden(t, tc.name, got.out)
			asJSON := subak(t, []string{"SUBAK_ADMIN=" + address}, append(tc.args, "--json")...)
			if asJSON.code != tc.code || !json.Valid([]byte(asJSON.out)) {
				t.Errorf("--json: exit code %d, want %d; out %s", asJSON.code, tc.code, asJSON.out)
			}
		})
	}
}

func TestControlCharactersOfANodeDoNotReachTheTerminal(t *testing.T) {
	address, _ := serve(t, troubled)
	for _, command := range []string{"status", "members"} {
		if out := subak(t, nil, command, "--admin", address).out; strings.ContainsAny(out, "\x1b\r") {
			t.Errorf("%s lets an escape through: %q", command, out)
		}
	}
}

func TestFailuresHaveACodeAndAreSaidOnceWithAMend(t *testing.T) {
	address, _ := serve(t, healthy)
	gone := httptest.NewServer(nil)
	gone.Close()
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer garbage.Close()
	cases := []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no node", []string{"status", "--admin", gone.Listener.Addr().String()}, exitUnreachable, []string{"cannot reach the node at 127.0.0.1", "mend: is the node running?"}},
		{"no socket", []string{"members", "--admin", "unix:/nonexistent/s"}, exitUnreachable, []string{"unix:/nonexistent/s", "mend: "}},
		{"not a node", []string{"status", "--admin", garbage.Listener.Addr().String()}, exitUnreachable, []string{"not that of a subak node", "mend: "}},
		{"bad address", []string{"status", "--admin", "here"}, exitUsage, []string{"neither host:port nor unix:/path", "mend: "}},
		{"no token", []string{"freeze", "--admin", address}, exitRefused, []string{"refused (401): token missing", "mend: ", "--token-file"}},
		{"no token file", []string{"freeze", "--admin", address, "--token-file", "/nonexistent"}, exitBroken, []string{"/nonexistent:1: admin.token_file: cannot be read", "mend: "}},
		{"no such budget", []string{"explain", "orign", "x", "--admin", address}, exitRefused, []string{`no budget "orign"`, "mend: see subak status"}},
		{"no such command", []string{"stauts"}, exitUsage, []string{"unknown command", "status", "mend: see subak --help"}},
		{"no such subcommand", []string{"config", "chek"}, exitUsage, []string{"unknown command", "mend: see subak config --help"}},
		{"no such flag", []string{"status", "--jsn"}, exitUsage, []string{"unknown flag: --jsn", "mend: see subak status --help"}},
		{"too few words", []string{"explain", "origin"}, exitUsage, []string{"name a BUDGET and a CLASS", "mend: see subak explain --help"}},
		{"no file to check", []string{"config", "check"}, exitUsage, []string{"no configuration file is named", "mend: "}},
		{"no file to run", []string{"run"}, exitUsage, []string{"no configuration file is named", "mend: name it by --config"}},
		{"a file to run that is not there", []string{"run", "-c", "/nonexistent"}, exitBroken, []string{"1 fault:", "/nonexistent:1: cannot be read", "mend: "}},
		{"manual pages into nowhere", []string{"man", "/nonexistent/dir"}, exitBroken, []string{"manual pages", "mend: "}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := subak(t, nil, tc.args...)
			if got.code != tc.code || got.out != "" {
				t.Errorf("exit code %d, want %d; stdout %q", got.code, tc.code, got.out)
			}
			for _, want := range tc.says {
				if strings.Count(got.err, want) != 1 {
					t.Errorf("want %q once in\n%s", want, got.err)
				}
			}
			if !strings.HasPrefix(got.err, "subak: ") || strings.Count(got.err, "subak: ") != 1 || strings.Contains(got.err, "Usage:") {
				t.Errorf("want one message in\n%s", got.err)
			}
		})
	}
}

func TestTheTokenComesFromItsFile(t *testing.T) {
	address, asked := serve(t, healthy)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, run := range []result{
		subak(t, nil, "freeze", "--admin", address, "--token-file", file),
		subak(t, []string{"SUBAK_TOKEN_FILE=" + file, "SUBAK_ADMIN=" + address}, "freeze"),
	} {
		if run.code != exitOK || !strings.Contains(run.out, "undo with subak unfreeze") {
			t.Errorf("got %+v", run)
		}
	}
	if want := "[POST /v1/freeze Bearer 0123456789abcdef POST /v1/freeze Bearer 0123456789abcdef]"; fmt.Sprint(*asked) != want {
		t.Errorf("asked %v, want %s", *asked, want)
	}
}

func TestExplainAsksForTheNodeThatIsNamed(t *testing.T) {
	address, asked := serve(t, healthy)
	subak(t, nil, "explain", "origin", "uncleared", "fra", "--admin", address)
	if got := (*asked)[0]; got != "GET /v1/explain?budget=origin&class=uncleared&node=fra" {
		t.Errorf("asked %s", got)
	}
}

func TestConfigCommands(t *testing.T) {
	example := subak(t, nil, "config", "example")
	file := filepath.Join(t.TempDir(), "subak.yaml")
	if err := os.WriteFile(file, []byte(example.out), 0o600); err != nil {
		t.Fatal(err)
	}
	named := func(r result) string { return strings.ReplaceAll(r.out, file, "subak.yaml") }
	check := subak(t, nil, "config", "check", file)
	golden(t, "config-check", named(check))
	print := subak(t, []string{"SUBAK_NODE=fra"}, "config", "print", file, "--gossip-tick=100ms")
	golden(t, "config-print", named(print))
	bad := subak(t, nil, "config", "check", file, "--gossip-term=1ms", "--node=xyz")
	golden(t, "config-faults", named(bad))
	if example.code+check.code+print.code != 0 || bad.code != exitBroken || example.err+check.err+print.err+bad.err != "" {
		t.Errorf("codes %d %d %d %d", example.code, check.code, print.code, bad.code)
	}
	var said checked
	asJSON := subak(t, nil, "config", "check", "--json", file, "--node=xyz")
	if err := json.Unmarshal([]byte(asJSON.out), &said); err != nil || said.OK || len(said.Faults) != 1 || said.Faults[0].Field != "node.name" || asJSON.code != exitBroken {
		t.Errorf("got %+v, %v, code %d", said, err, asJSON.code)
	}
}

func TestEverythingThatPrintsHasJSON(t *testing.T) {
	address, _ := serve(t, healthy)
	env := []string{"SUBAK_ADMIN=" + address, "SUBAK_CONFIG=" + filepath.Join(t.TempDir(), "c.yaml")}
	if err := os.WriteFile(strings.TrimPrefix(env[1], "SUBAK_CONFIG="), []byte(subak(t, nil, "config", "example").out), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"status", "members", "explain origin x", "unfreeze", "keygen", "version", "config example", "config check", "config print"} {
		got := subak(t, env, append(strings.Fields(command), "--json")...)
		if got.code != exitOK || !json.Valid([]byte(got.out)) || got.err != "" {
			t.Errorf("%s: code %d, out %s, err %s", command, got.code, got.out, got.err)
		}
	}
}

func TestManualPagesCoverEveryCommand(t *testing.T) {
	dir := t.TempDir()
	if got := subak(t, nil, "man", dir); got.code != exitOK {
		t.Fatal(got.err)
	}
	for _, page := range []string{"subak", "subak-run", "subak-status", "subak-config-check", "subak-explain"} {
		text, err := os.ReadFile(filepath.Join(dir, page+".1"))
		if err != nil || len(text) == 0 {
			t.Errorf("%s: %v", page, err)
		}
	}
}

func TestCompletionKnowsTheCommands(t *testing.T) {
	got := subak(t, nil, "__complete", "con")
	if got.code != exitOK || !strings.Contains(got.out, "config") {
		t.Errorf("got %+v", got)
	}
}

func TestKeysAreLongAndDifferent(t *testing.T) {
	a, b := subak(t, nil, "keygen"), subak(t, nil, "keygen")
	if len(strings.TrimSpace(a.out)) != 44 || a.out == b.out {
		t.Errorf("got %q and %q", a.out, b.out)
	}
}

// What libraries print must not break a log of JSON lines.
func TestTheStandardLoggerWritesIntoOurs(t *testing.T) {
	was, flags := stdlog.Writer(), stdlog.Flags()
	defer func() { stdlog.SetOutput(was); stdlog.SetFlags(flags) }()
	var buf bytes.Buffer
	adoptStandardLog(newLogger(&buf, config.Log{Level: "info", Format: "json"}))
	stdlog.Print("unsolicited response")
	var line struct{ Level, Msg string }
	if err := json.Unmarshal(buf.Bytes(), &line); err != nil || line.Level != "WARN" || line.Msg != "unsolicited response" {
		t.Errorf("got %q, %v", buf.String(), err)
	}
}

func TestFiguresAreShortAndPlain(t *testing.T) {
	cases := []struct{ got, want string }{
		{rate(19999.7, "/s"), "20,000/s"}, {rate(6.25, "/s"), "6.2/s"}, {rate(0.3, "/s"), "0.3/s"}, {rate(0, "/s"), "0/s"}, {rate(1.2e-5, "/s"), "<0.001/s"},
		{rate(-1, "/s"), "-"}, {rate(12.5e6, "B/s"), "12.5 MB/s"}, {rate(0.3, "B/s"), "0.3 B/s"}, {rate(math.Inf(1), "/s"), "?"},
		{span(0.25), "250ms"}, {span(1), "1s"}, {span(75), "1m15s"}, {span(11520), "3h12m"}, {span(1e6), "11d13h"}, {span(-1), "?"},
		{millis(-1), "-"}, {millis(6.53), "6.5ms"}, {millis(162), "162ms"}, {millis(93000), "1m33s"},
		{percent(1, 0), "-"}, {percent(1, 3), "33.3%"},
	}
	for _, tc := range cases {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func TestLiveNodesOutsideThePoolAreNamed(t *testing.T) {
	s := api.Status{Node: "a", Budgets: []api.Budget{{Cells: []api.Location{
		{Node: "a", Live: true}, {Node: "b", Live: true}, {Node: "c"}, {Node: "d", Live: true, Ceiling: 1},
	}}}}
	if got := outside(&s); len(got) != 1 || got[0] != "b" {
		t.Errorf("got %v, want b: live, without a ceiling, not the one that is asked", got)
	}
}
