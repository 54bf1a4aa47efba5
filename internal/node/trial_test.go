package node

import (
	"errors"
	"testing"
	"time"

	"subak/internal/api"
	"subak/internal/core"
	"subak/internal/web"
)

func TestATrialIsJudgedByWhatItsCanaryDoes(t *testing.T) {
	const term, span = time.Second, 10 * time.Second
	well := core.NodeProgress{Node: "b", Adopted: true, Acked: true, Heard: 100 * time.Millisecond}
	but := func(change func(*core.NodeProgress)) core.NodeProgress { x := well; change(&x); return x }
	silent := but(func(x *core.NodeProgress) { x.Heard = term })
	never := but(func(x *core.NodeProgress) { x.Heard = -1 })
	type look struct {
		at   time.Duration // since the trial began
		b    core.NodeProgress
		want verdict
	}
	for name, looks := range map[string][]look{
		"it does well throughout": {{0, well, goesOn}, {span - 1, well, goesOn}, {span, well, promoted}},
		"it takes its time":       {{0, never, goesOn}, {2 * term, well, goesOn}, {span, well, goesOn}, {2*term + span, well, promoted}},
		"never heard":             {{0, never, goesOn}, {3*term - 1, never, goesOn}, {3 * term, never, failed}},
		"not taken up":            {{3 * term, but(func(x *core.NodeProgress) { x.Adopted = false }), failed}},
		"not acknowledged":        {{3 * term, but(func(x *core.NodeProgress) { x.Acked = false }), failed}},
		"it falls silent":         {{0, well, goesOn}, {5 * term, silent, goesOn}, {8*term - 1, silent, goesOn}, {8 * term, silent, failed}},
		"silent at the very end":  {{0, well, goesOn}, {span, silent, goesOn}, {span + term, well, goesOn}, {span + term + span, well, promoted}},
		"it restarts":             {{0, well, goesOn}, {span / 2, silent, goesOn}, {span/2 + 2*term, well, goesOn}, {span + 2*term, well, goesOn}, {span/2 + 2*term + span, well, promoted}},
		"it is this node":         {{0, but(func(x *core.NodeProgress) { x.Self, x.Heard = true, 0 }), goesOn}, {span, but(func(x *core.NodeProgress) { x.Self, x.Heard = true, time.Hour }), promoted}},
		"another node does well":  {{0, but(func(x *core.NodeProgress) { x.Node = "c" }), goesOn}, {3 * term, but(func(x *core.NodeProgress) { x.Node = "c" }), failed}},
	} {
		t.Run(name, func(t *testing.T) {
			began := int64(time.Hour)
			tr := trial{canary: "b", span: span, ill: began}
			for _, l := range looks {
				p := core.Progress{Nodes: []core.NodeProgress{{Node: "a", Self: true, Adopted: true, Acked: true}, l.b}}
				if got := tr.judge(began+l.at.Nanoseconds(), &p, term); got != l.want {
					t.Errorf("after %v: %d, want %d", l.at, got, l.want)
				}
			}
		})
	}
}

func TestTheTimeOfATrialIsBounded(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{0: trialDefault, 0.5: 500 * time.Millisecond, 3600: time.Hour, -1: -1, 3601: -1, 1e300: -1} {
		got, err := trialOf(&api.ChangeRequest{CanarySeconds: seconds})
		if want < 0 && !errors.Is(err, web.ErrInvalid) || want >= 0 && (err != nil || got != want) {
			t.Errorf("%v seconds: %v, %v; want %v", seconds, got, err, want)
		}
	}
}
