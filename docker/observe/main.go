// Command observe checks the dashboard and the alerts of docker/ against a
// Prometheus that scrapes a real cluster: every query of every panel must be
// accepted and give at least one series, every metric that a panel or an alert names
// must exist, and of the alerts those named must have been noticed, or not have
// fired.
//
// It reads the files as Grafana and Prometheus do, and shares nothing with the
// nodes: a metric that is renamed in the code and not here is found.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"
)

// askTimeout bounds one question, answerMax what is read of an answer, in bytes.
const (
	askTimeout = 10 * time.Second
	answerMax  = 8 << 20
)

// query is one expression and where it stands.
type query struct {
	where, expr string
}

// dashboard is what is read of the file.
type dashboard struct {
	Panels []struct {
		Title   string `json:"title"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// rules is what is read of the alerts.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert string `yaml:"alert"`
			Expr  string `yaml:"expr"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// panelQueries are those of a dashboard, with its variables as it begins: all.
func panelQueries(text []byte) (all []query, err error) {
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	variables := strings.NewReplacer("$budget", ".*", "$pop", ".*", "$__rate_interval", "10s")
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			expr := variables.Replace(t.Expr)
			if strings.Contains(expr, "$") {
				return nil, fmt.Errorf("panel %q: a variable that is not known here: %s", p.Title, t.Expr)
			}
			all = append(all, query{"panel " + p.Title, expr})
		}
	}
	return all, nil
}

func alertQueries(text []byte) (all []query, err error) {
	var r rules
	if err := yaml.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	for _, g := range r.Groups {
		for _, rule := range g.Rules {
			all = append(all, query{"alert " + rule.Alert, rule.Expr})
		}
	}
	return all, nil
}

// metrics are the names of the metrics that the queries ask for, sorted.
func metrics(queries []query) (names []string) {
	quotedText := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	metricName := regexp.MustCompile(`\b(?:budget|traffic|process|go)_[a-z0-9_]+`)
	for _, q := range queries {
		names = append(names, metricName.FindAllString(quotedText.ReplaceAllString(q.expr, `""`), -1)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// prometheus is the address of one.
type prometheus string

// count returns how many series an expression gives now.
func (p prometheus) count(ctx context.Context, expr string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(p)+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, answerMax)).Decode(&answer); err != nil {
		return 0, fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	if answer.Error != "" {
		return 0, errors.New(answer.Error)
	}
	return len(answer.Data.Result), nil
}

// check returns what is wrong.
func (p prometheus) check(ctx context.Context, panels, alerts []query, noticed, silent []string) (faults []string) {
	ask := func(where, expr string, want func(int) bool, fault string) {
		switch n, err := p.count(ctx, expr); {
		case err != nil:
			faults = append(faults, fmt.Sprintf("%s: %s: %v", where, expr, err))
		case !want(n):
			faults = append(faults, fmt.Sprintf("%s: %s", where, fault))
		}
	}
	some := func(n int) bool { return n > 0 }
	none := func(n int) bool { return n == 0 }
	for _, q := range panels {
		ask(q.where, q.expr, some, "shows nothing: "+q.expr)
	}
	for _, q := range alerts {
		ask(q.where, q.expr, func(int) bool { return true }, "")
	}
	for _, name := range metrics(slices.Concat(panels, alerts)) {
		ask("metric "+name, "last_over_time("+name+"[10m])", some, "no node exports it")
	}
	for _, name := range noticed {
		ask("alert "+name, fmt.Sprintf(`last_over_time(ALERTS{alertname=%q}[1h])`, name), some, "never became pending, though it had cause to")
	}
	for _, name := range silent {
		ask("alert "+name, fmt.Sprintf(`last_over_time(ALERTS{alertname=%q,alertstate="firing"}[1h])`, name), none, "has fired")
	}
	return faults
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "observe: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	address := flag.String("prometheus", "http://127.0.0.1:9090", "where it is")
	dashboardFile := flag.String("dashboard", "", "file of the dashboard")
	rulesFile := flag.String("rules", "", "file of the alerts")
	noticed := flag.String("noticed", "", "alerts, a,b, that must have been pending or firing")
	silent := flag.String("silent", "", "alerts, a,b, that must not have fired")
	flag.Parse()
	panels, err := read(*dashboardFile, panelQueries)
	if err != nil {
		return err
	}
	alerts, err := read(*rulesFile, alertQueries)
	if err != nil {
		return err
	}
	if faults := prometheus(*address).check(ctx, panels, alerts, list(*noticed), list(*silent)); len(faults) > 0 {
		return fmt.Errorf("%d faults:\n  %s", len(faults), strings.Join(faults, "\n  "))
	}
	fmt.Printf("%10s%d panel queries show something, %d metrics exist, noticed: %s\n", "",
		len(panels), len(metrics(slices.Concat(panels, alerts))), *noticed)
	return nil
}

func read(file string, parse func([]byte) ([]query, error)) ([]query, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

func list(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
}
