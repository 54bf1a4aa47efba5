package evaluation

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"subak/internal/contention"
)

// cases are all scenarios over the 22 cities.
func cases(t testing.TB, cycles int) (all []Case) {
	t.Helper()
	top := cities(t)
	for _, name := range contention.Names() {
		all = append(all, Case{Name: name, Title: contention.Title(name), Spec: ContendedSpec(top, 100_000), Open: func(seed uint64) (Trace, error) {
			return Contended(eight(t, name), top, 100_000, seed, cycles)
		}})
	}
	return all
}

func TestTheResultsDoNotHangOnTheNumberOfWorkers(t *testing.T) {
	ms, err := Find([]string{"paper", "protect50"})
	if err != nil {
		t.Fatal(err)
	}
	play := func(workers int) []Row {
		told := 0
		rows, err := Run(t.Context(), &Plan{Cases: cases(t, 60), Methods: ms, Lags: []int{0, 1}, Seeds: []uint64{1, 2, 3}, Workers: workers,
			Progress: func(done, all int) {
				if told++; done != told || all != 8*2*2*3 {
					t.Errorf("told %d of %d as number %d", done, all, told)
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if diff := cmp.Diff(play(1), play(5), cmp.AllowUnexported(Total{})); diff != "" {
		t.Errorf("(-one worker +five):\n%s", diff)
	}
}

func TestThePlayOfATraceThatFailsEndsWithItsError(t *testing.T) {
	broken := errors.New("no such trace")
	all := cases(t, 10)
	all[3].Open = func(uint64) (Trace, error) { return nil, broken }
	_, err := Run(t.Context(), &Plan{Cases: all, Methods: Methods()[:1], Lags: []int{1}, Seeds: []uint64{1}, Workers: 2})
	if !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

func TestAPlayThatIsEndedSaysSo(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	_, err := Run(ctx, &Plan{Cases: cases(t, 10), Methods: Methods(), Lags: []int{1}, Seeds: []uint64{1}, Workers: 2, Progress: func(done, _ int) {
		if done == 5 {
			end()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was ended", err)
	}
}
