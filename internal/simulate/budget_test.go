package simulate

import (
	"strings"
	"testing"

	"subak/allocator"
	"subak/internal/evaluation"
)

const file = `nodes:
  - {name: ams, weight: 1}
  - {name: fra, weight: 2}
  - {name: sin, weight: 1}
budgets:
  - name: origin
    limit: 400/s
    classes:
      - {name: high, reserve: 60%}
      - {name: low, reserve: 40%}
    cells:
      - {node: fra, class: high, cap: 100/s}
`

func budget(t *testing.T) *Budget {
	t.Helper()
	b, err := ReadBudget("my.yaml", []byte(file), "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWhatIfChangesTheBudgetAndLeavesTheOldOneAlone(t *testing.T) {
	b := budget(t)
	n, err := b.With(&Change{Limit: "800/s", Reserve: map[string]string{"high": "75%", "low": "25%"}, Weights: map[string]string{"sin": "7"}, Without: []string{"fra"}})
	if err != nil {
		t.Fatal(err)
	}
	s := n.Spec()
	if s.Budget != 800*allocator.Unit || s.Classes[0].Reservation != 600*allocator.Unit || len(s.Weights) != 2 || s.Weights[1] != 7 {
		t.Errorf("changed to %+v", s)
	}
	if old := b.Spec(); old.Budget != 400*allocator.Unit || len(old.Weights) != 3 || old.Weights[2] != 1 || old.Caps[0][1] != 100*allocator.Unit || old.Classes[0].Reservation != 240*allocator.Unit {
		t.Errorf("the old budget became %+v", old)
	}
}

func TestTheClientsOfALostNodeGoToTheOthersByWeight(t *testing.T) {
	b := budget(t)
	trace, err := evaluation.ReadCSV(strings.NewReader("time,location,class,demand\n0,ams,high,10\n0,fra,high,90\n0,fra,low,7\n1,sin,low,5\n2,ams,low,1\n"), b.Names(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := Cases(trace, b, &Change{Without: []string{"fra"}, Weights: map[string]string{"sin": "2"}})
	if err != nil || len(cases) != 2 {
		t.Fatalf("%d cases, %v, want as-is and what-if", len(cases), err)
	}
	then, err := cases[1].Open(0)
	if err != nil {
		t.Fatal(err)
	}
	demand, legit := make([]allocator.Rate, 4), make([]allocator.Rate, 2)
	if ok, err := then.Next(demand, legit); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if want := [4]allocator.Rate{55_000_000, 45_000_000, 3_500_000, 3_500_000}; [4]allocator.Rate(demand) != want {
		t.Errorf("demand %v, want %v", demand, want)
	}
}

func TestAChangeThatMakesNoSenseNamesItsFlagAndAMend(t *testing.T) {
	for _, c := range []struct {
		change Change
		says   string
	}{
		{Change{Limit: "many"}, "--set-limit: "},
		{Change{Reserve: map[string]string{"mid": "1%"}}, `--set-reserve: no class "mid"; mend: `},
		{Change{Reserve: map[string]string{"high": "x"}}, "--set-reserve high: "},
		{Change{Reserve: map[string]string{"high": "70%"}}, "add up to 110%; mend: change them by -10%"},
		{Change{Weights: map[string]string{"ams": "0"}}, "--set-weight ams=0: no weight; mend: write a whole number"},
		{Change{Weights: map[string]string{"amz": "1"}}, `no node "amz"; mend: did you mean ams?`},
		{Change{Without: []string{"lhr"}}, `--without: no node "lhr"`},
		{Change{Without: []string{"ams", "fra", "sin"}}, "--without leaves no node"},
	} {
		if _, err := budget(t).With(&c.change); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.change, err, c.says)
		}
	}
}

func TestAFileWithoutTheBudgetSaysWhichThereAre(t *testing.T) {
	two := file + strings.Replace(file[strings.Index(file, "  - name: origin"):], "origin", "egress", 1)
	for _, c := range []struct{ text, name, says string }{
		{two, "", "it has 2 budgets; mend: name one by --budget-name: origin, egress"},
		{two, "orign", `no budget "orign"; mend: one of origin, egress`},
		{"nodes: []\n", "", "mend: "},
		{"", "", "my.yaml"},
	} {
		if _, err := ReadBudget("my.yaml", []byte(c.text), c.name); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
	if b, err := ReadBudget("my.yaml", []byte(two), "egress"); err != nil || b.Limit() != "400/s" {
		t.Errorf("egress: %v", err)
	}
}
