package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

// small is a complete configuration of a few lines.
const small = `
cluster: {name: edge}
node: {name: ams}
gossip: {seeds: ["a:1"], tick: 100ms}
nodes: [{name: ams}, {name: fra, weight: 2}]
budgets: [{name: origin, limit: 10/s, classes: [{name: hi, reserve: 33.3333%}, {name: lo, reserve: 66.6667%}]}]
`

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func flagsOf(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

func TestFlagsWinOverEnvironmentOverLaterFilesOverEarlierOnes(t *testing.T) {
	first, second := write(t, small), write(t, "gossip: {tick: 150ms, profile: lan}\nlog: {level: warn}\n")
	env := []string{"SUBAK_GOSSIP_TICK=250ms", "SUBAK_LOG_LEVEL=error", "HOME=/root", "SUBAK_NODE=fra", "SUBAK_CLUSTER_SINGLE=false"}
	c, err := Load([]string{first, second}, env, flagsOf(t, "--gossip-tick=300ms", "--gossip-seeds", "b:1, c:2"))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.Gossip.Tick, c.Log.Level, c.Gossip.Profile, c.Node.Name, c.Gossip.Seeds, c.Gossip.Term}
	want := []any{300 * time.Millisecond, Level("error"), LAN, "fra", []string{"b:1", "c:2"}, 3 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfEnvironmentAndFlagsNameThem(t *testing.T) {
	_, err := Load([]string{write(t, small)}, []string{"SUBAK_GOSSIP_TERM=3", "SUBAK_NODE=paris"}, flagsOf(t, "--log-format=xml", "--cluster-single"))
	for _, want := range []string{
		`env SUBAK_GOSSIP_TERM: gossip.term: "3" has no unit; mend: write 3ms, 3s or 3m`,
		`env SUBAK_NODE: node.name: there is no node "paris"; mend: write one of ams, fra`,
		`flag --log-format: log.format: unknown value "xml"; mend: write one of text, json`,
		`flag --cluster-single: cluster.single: is true, but nodes lists 2 nodes`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got\n%v\nwant %s", err, want)
		}
	}
}

func TestBootstrapIsAFlagAndSecretsAreNone(t *testing.T) {
	c, err := Load([]string{write(t, small)}, nil, flagsOf(t, "--bootstrap"))
	if err != nil || c.Cluster.State != New {
		t.Errorf("got %+v, %v", c, err)
	}
	if flagsOf(t).Lookup("gossip-keys") != nil {
		t.Error("keys can be given as a flag, where ps shows them")
	}
}

func TestAnUnknownVariableWarnsOnlyWhenItLooksLikeATypo(t *testing.T) {
	env := []string{"SUBAK_GOSIP_TICK=1s", "SUBAK_PORT_7946_UDP_PROTO=udp", "SUBAK_ADMIN=1.2.3.4:1", "SUBAK_TOKEN_FILE=/x", "SUBAK_CONFIG=y"}
	c, err := Load([]string{write(t, small)}, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(c.Warnings(), "\n")
	if !strings.Contains(said, "SUBAK_GOSIP_TICK is unknown and ignored; did you mean SUBAK_GOSSIP_TICK?") || strings.Count(said, "SUBAK_") != 2 {
		t.Errorf("got %s", said)
	}
}

func TestAMissingFileIsOneFault(t *testing.T) {
	_, err := Load([]string{"/nonexistent/c.yaml"}, nil, nil)
	faults, _ := errors.AsType[Faults](err)
	if len(faults) != 1 || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v", err)
	}
}

func TestTheNodesNameMayBeMissingFromASharedFileOnly(t *testing.T) {
	file := write(t, strings.Replace(small, "node: {name: ams}", "", 1))
	if _, err := Load([]string{file}, nil, nil); err == nil || !strings.Contains(err.Error(), "--node NAME") {
		t.Errorf("Load: got %v", err)
	}
	if _, err := LoadShared([]string{file}, nil, nil); err != nil {
		t.Errorf("LoadShared: %v", err)
	}
}

func TestOneNodeMustSaySo(t *testing.T) {
	one := strings.Replace(small, ", {name: fra, weight: 2}", "", 1)
	if _, err := Parse("x", []byte(one)); err == nil || !strings.Contains(err.Error(), "cluster.single: true") {
		t.Errorf("got %v", err)
	}
	one = strings.Replace(one, "name: edge", "name: edge, single: true", 1)
	if _, err := Parse("x", []byte(one)); err != nil {
		t.Error(err)
	}
}

func TestGuardAndEpsMustCoverTheClocks(t *testing.T) {
	cases := []struct{ name, protocol, want string }{
		{"defaults", "{}", ""},
		{"drift 0.4975% needs 1.0002%", "{drift: 0.4976%}", "write at least 1.0002%"},
		{"drift just fits", "{drift: 0.4975%}", ""},
		{"drift fits, eps a millionth too small", "{drift: 0.4975%, eps: 0.9999%}", "write at least 1%"},
		{"no drift, no eps", "{drift: 0%, eps: 0%}", ""},
		{"wild clocks", "{drift: 11%}", "0% and 10%"},
		{"eps of half", "{eps: 51%}", "above 50%"},
		{"guard of 19ms", "{guard: 19ms}", "at least 20ms"},
		{"guard of a third of the term", "{guard: 1s}", "quarter of the term"},
		{"live of two ticks", "{live: 200ms}", "at least 300ms"},
		{"live of three ticks", "{live: 300ms}", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("x", []byte(small+"protocol: "+tc.protocol+"\n"))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAdminIsLoopbackUnlessATokenOrInsecureIsGiven(t *testing.T) {
	cases := []struct {
		admin string
		ok    bool
	}{
		{`{}`, true},
		{`{listen: "127.0.0.2:1"}`, true},
		{`{listen: "[::1]:1"}`, true},
		{`{listen: "[::ffff:127.0.0.1]:1"}`, true},
		{`{listen: "unix:/run/s"}`, true},
		{`{listen: "0.0.0.0:1"}`, false},
		{`{listen: "[::]:1"}`, false},
		{`{listen: "192.168.1.1:1"}`, false},
		{`{listen: "192.168.1.1:1", token_file: /etc/t}`, true},
		{`{listen: "192.168.1.1:1", insecure: true}`, true},
	}
	for _, tc := range cases {
		_, err := Parse("x", []byte(small+"admin: "+tc.admin+"\n"))
		if (err == nil) != tc.ok {
			t.Errorf("%s: got %v, want ok %v", tc.admin, err, tc.ok)
		}
	}
}

func TestDefaultsThatDependOnOthers(t *testing.T) {
	text := `
cluster: {name: edge}
gossip: {seeds: ["a:1"]}
nodes: [{name: a}, {name: b}]
budgets:
  - {name: two, limit: 1/s, classes: [{name: x, reserve: 50%}, {name: y, reserve: 50%}]}
  - {name: paper2, limit: 1/s, mode: paper, classes: [{name: x, reserve: 50%}, {name: y, reserve: 50%}]}
  - {name: paper3, limit: 1/s, mode: paper, insurance: 1%, classes: [{name: x, reserve: 50%}, {name: y, reserve: 50%}]}
listeners:
  - {name: checks, listen: "127.0.0.1:1", on_unknown: allow}
  - {name: proxy, listen: "127.0.0.1:2", on_unknown: deny, backends: [{url: "http://h"}]}
`
	c, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{
		c.Budgets[0].Classes[0].Level1, c.Budgets[0].Classes[1].Level1, c.Budgets[1].Classes[1].Level1, c.Budgets[2].Classes[1].Level1,
		c.Listeners[0].Check.Enabled, c.Listeners[1].Check.Enabled, c.Listeners[1].Backends[0].Weight,
	}
	want := []any{Proportional, MaxMin, MaxMin, Proportional, true, false, int64(1)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWarningsNameWhatWillSurprise(t *testing.T) {
	text := strings.NewReplacer("name: origin, limit: 10/s", "name: origin, limit: 9/s, shadow: true", "name: edge", "name: edge, state: new").Replace(small) +
		"admin: {listen: \"0.0.0.0:1\", insecure: true}\nlisteners: [{name: l, listen: \"0.0.0.0:2\", trusted_hops: 1, on_unknown: allow, rules: [{match: {path: /x}, budget: origin, class: hi, cost: 10}]},\n" +
		"  {name: m, listen: \"0.0.0.0:3\", default: {budget: origin, class: lo}, rules: [{match: {method: [PUT], header: {X-V: \"1\"}}, budget: origin, class: hi}]}]\n"
	c, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(c.Warnings(), "\n")
	for _, want := range []string{
		"under one request per tick", "not encrypted", "data_dir", "cluster.state is new", "shadow mode", "without limit", "admin.insecure", "cost 10 is more", "forge its address; add trusted_peers",
		"listener m, rule 0 believes headers of any client", "listener m: with trusted_hops 0",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no warning about %q in\n%s", want, said)
		}
	}
	alone, err := Parse("x", []byte("cluster: {name: x, single: true}\nnode: {name: a}\nnodes: [{name: a}]\n"+
		"budgets: [{name: o, limit: 2/s, classes: [{name: hi, reserve: 50%}, {name: lo, reserve: 50%}]}]\n"))
	if err != nil || strings.Contains(strings.Join(alone.Warnings(), "\n"), "loans") {
		t.Errorf("a single node is warned of %q, %v; it has nobody to lend to", alone.Warnings(), err)
	}
	example, err := Parse("x", []byte(Example()))
	if err != nil || len(example.Warnings()) != 1 || !strings.Contains(example.Warnings()[0], "everybody knows") {
		t.Errorf("the example warns of %q, %v; want its key only", example.Warnings(), err)
	}
}

func TestTheEffectiveConfigurationLoadsAgainAndHidesSecrets(t *testing.T) {
	for name, text := range map[string]string{
		"example": strings.Replace(Example(), `["c3ViYWsgZXhhbXBsZSBrZXk6IHJlcGxhY2UgdGhpcyE="]`, "[]", 1),
		"small":   small,
		"zeros":   strings.Replace(small, "name: lo,", "name: lo, lend: 0%, borrow: 0%, protect: 0%,", 1) + "admin: {ready_when_isolated: false}\n",
		"deny":    small + "listeners: [{name: l, listen: \"127.0.0.1:1\", on_unknown: deny}]\n",
	} {
		c, err := Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		printed, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(name, printed)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, printed)
		}
		if diff := cmp.Diff(c, again, cmpopts.EquateComparable(Endpoint{}), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Config{}), compareAddresses()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	c, err := Parse("example", []byte(Example()))
	if err != nil {
		t.Fatal(err)
	}
	y, _ := c.YAML()
	j, _ := c.JSON()
	for _, out := range []string{string(y), string(j)} {
		if strings.Contains(out, c.Gossip.Keys[0]) || !strings.Contains(out, redacted) {
			t.Errorf("the key is printed:\n%s", out)
		}
	}
}

// FuzzLoadNeverPanics: any bytes give a checked configuration or faults with a
// place and a mend, and a configuration that loads is one the allocator takes
// and that prints.
func FuzzLoadNeverPanics(f *testing.F) {
	f.Add([]byte(Example()))
	f.Add([]byte(small))
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no test data")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a, !!x y, <<: {}]\n? b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz.yaml", data)
		if err == nil {
			c.Summary()
			if _, err := c.YAML(); err != nil {
				t.Fatal(err)
			}
			return
		}
		faults, ok := errors.AsType[Faults](err)
		if !ok {
			t.Fatalf("%T, want Faults", err)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.What == "" || fault.Mend == "" {
				t.Fatalf("a fault without place, text or mend: %+v", fault)
			}
		}
	})
}

func TestAnEndpointForAllIsDialledByLoopback(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:80": "127.0.0.1:80", "[::]:80": "[::1]:80", "10.0.0.1:80": "10.0.0.1:80", "unix:/run/s": "unix:/run/s",
	} {
		var e Endpoint
		if err := e.UnmarshalText([]byte(listen)); err != nil || e.Dial().String() != want {
			t.Errorf("%s: got %s, %v; want %s", listen, e.Dial(), err, want)
		}
	}
}

func TestDoorsThatSurpriseAreWarnedAbout(t *testing.T) {
	base := strings.Replace(small, "{name: hi, reserve: 33.3333%}", "{name: hi, reserve: 33.3333%, tenants: {each: 10%}}", 1)
	door := "listeners: [{name: l, listen: 0.0.0.0:1, on_unknown: deny, backends: [{url: http://h}], rules: [{match: {path: /a}, budget: origin, class: hi%s}]}]\n"
	broken := write(t, "no certificate")
	for _, tc := range []struct{ name, text, want string }{
		{"tenants nobody tells apart", base, "class hi bounds its tenants, but no door"},
		{"a door without a tenant", base + fmt.Sprintf(door, ""), "class hi bounds its tenants, but no door"},
		{"a tenant of the client's choosing", base + fmt.Sprintf(door, ", tenant: {header: X-Key}"), "by the header X-Key: add trusted_peers"},
		{"an open door for Envoys", small + "envoy: [{name: e, listen: 0.0.0.0:2, on_unknown: allow, shadow: true}]", "whoever reaches 0.0.0.0:2 can spend"},
		{"everything allowed", small + "envoy: [{name: e, listen: 0.0.0.0:2, on_unknown: allow}]", "lets descriptors that no rule matches pass"},
		{"shadow", small + "envoy: [{name: e, listen: 127.0.0.1:2, on_unknown: deny, shadow: true}]", "envoy door e is in shadow mode"},
		{"no certificate there", small + "envoy: [{name: e, listen: 127.0.0.1:2, on_unknown: deny, tls: {cert_file: /nonexistent/c, key_file: /nonexistent/k}}]", "/nonexistent/c is not there yet"},
		{"a broken certificate", small + "envoy: [{name: e, listen: 127.0.0.1:2, on_unknown: deny, tls: {cert_file: " + broken + ", key_file: " + broken + "}}]", "envoy[0].tls will not do"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Parse("x", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(c.Warnings(), "\n"); !strings.Contains(all, tc.want) {
				t.Errorf("want a warning with %q, got:\n%s", tc.want, all)
			}
		})
	}
	for _, tenant := range []string{"{client: true}", "{header: X-Key}"} {
		text := strings.Replace(base+fmt.Sprintf(door, ", tenant: "+tenant), "0.0.0.0:1,", "0.0.0.0:1, trusted_peers: [10.0.0.0/8],", 1)
		c, err := Parse("x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(c.Warnings(), "\n"); strings.Contains(all, "tenants") || strings.Contains(all, "trusted_peers") {
			t.Errorf("tenant %s: %s", tenant, all)
		}
	}
}
