package web

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"subak/internal/api"
)

// scene is a scripted cluster: calm, then a flood of the lowest class at the
// third location. Every figure is a function of the second asked for.
type scene struct {
	nodes   []string
	classes []string
	budgets []string
	limit   float64
	flood   float64 // second at which the flood starts; 0 = never
}

// fiveCities is the scene of most tests. One name is hostile.
func fiveCities() scene {
	return scene{
		nodes:   []string{"ams", "fra", "lon", "nyc", hostileName},
		classes: []string{"confirmed", "uncleared"},
		budgets: []string{"origin"},
		limit:   20000,
		flood:   150,
	}
}

const hostileName = `<img src=x onerror=alert(1)>`

// crowd is a scene of many nodes, classes and budgets.
func crowd() scene {
	s := scene{limit: 250e6, flood: 200, classes: []string{"latency-critical", "interactive", "batch", "scavenger"}}
	for i := range 100 {
		s.nodes = append(s.nodes, fmt.Sprintf("pop-%03d", i))
	}
	for i := range 14 {
		s.budgets = append(s.budgets, fmt.Sprintf("egress-%02d", i))
	}
	return s
}

// at is the status at a second of the script.
func (s scene) at(sec float64) api.Status {
	st := api.Status{
		Time: time.Unix(1_800_000_000, 0).Add(time.Duration(sec * float64(time.Second))), Node: s.nodes[0], Cluster: "edge", Version: "v0.1.0",
		Uptime: 4000 + sec, Ready: true, Reason: "its share is in force, peers are heard", Join: api.Joined, Proved: true, Member: true,
		Epoch: api.Epoch{Version: 3, Hash: "9f31c2aa", Acked: true, Active: true}, TickMillis: 200, TermMillis: 3000,
		Digests: 1, Dropped: map[string]uint64{"stale": 12, "queue": 0},
	}
	for i, n := range s.nodes {
		m := api.Member{Name: n, Address: fmt.Sprintf("10.0.%d.2:7946", i), Self: i == 0, Listed: true, Weight: s.weight(i), Gossip: "alive", Live: true,
			AgeMillis: 40 + 37*math.Mod(sec*7+float64(i), 5), RTTMillis: 3.4 + 11*float64(i%9), Incarnation: "1800000000", Sequence: 7000 + uint64(sec*5),
			Digest: "4be17c09", Agrees: true}
		if i == 0 {
			m.AgeMillis, m.RTTMillis = 0, -1
		}
		st.Members = append(st.Members, m)
	}
	for i, name := range s.budgets {
		st.Budgets = append(st.Budgets, s.budget(name, i, sec))
	}
	return st
}

func (s scene) weight(i int) int64 { return int64(20 + 35*((i*7)%5)) }

// budget splits the limit by weight, and moves unused base to the flooded cell.
func (s scene) budget(name string, index int, sec float64) api.Budget {
	unit := "/s"
	if s.limit > 1e6 {
		unit = "B/s"
	}
	b := api.Budget{Name: name, Unit: unit, Limit: s.limit, BurstSeconds: 1, Mode: "pool-first", Shadow: index == 3}
	var weights float64
	for i := range s.nodes {
		weights += float64(s.weight(i))
	}
	hot := 2 % len(s.nodes)
	spare, needy := make([]float64, len(s.nodes)), 0.0
	for i, n := range s.nodes {
		base := s.limit * float64(s.weight(i)) / weights
		loc := api.Location{Node: n, Live: true, Ceiling: base, Share: base}
		for k := range s.classes {
			own := base / float64(len(s.classes))
			d := own * (0.55 + 0.12*math.Sin(sec/17+float64(i*3+k+index)))
			if i == hot && k == len(s.classes)-1 && s.flood > 0 && sec >= s.flood {
				d = s.limit * 0.9 * math.Min(1, (sec-s.flood+2)/8)
				needy = d - own
			}
			loc.Demand = append(loc.Demand, d)
			loc.Target = append(loc.Target, math.Min(d, own))
			loc.Refused = append(loc.Refused, 0)
			b.SumDemand += d
			if d < own {
				spare[i] += own - d
			}
		}
		b.Cells = append(b.Cells, loc)
	}
	s.lend(&b, hot, spare, needy)
	for i := range b.Cells {
		b.SumShare += b.Cells[i].Share
	}
	own := b.Cells[0]
	b.Base, b.Ceiling, b.Share, b.Target = own.Ceiling, own.Ceiling, own.Share, own.Share
	b.Lent = own.Ceiling - own.Share
	for k, c := range s.classes {
		b.Classes = append(b.Classes, api.Class{Name: c, Reservation: s.limit / float64(len(s.classes)), Demand: own.Demand[k], Target: own.Target[k],
			Share: own.Target[k] * 1.1, Offered: uint64(sec * own.Demand[k]), Admitted: uint64(sec*own.Demand[k]) - 3, Refused: 3 + uint64(k)*1841, RefusedRate: float64(k) * 14.5})
	}
	return b
}

// lend moves spare base to the hot location, and the rest is refused there.
func (s scene) lend(b *api.Budget, hot int, spare []float64, needy float64) {
	k := len(s.classes) - 1
	cell := &b.Cells[hot]
	for i := range spare {
		amount := math.Min(spare[i]*0.97, needy)
		if amount <= 0 {
			continue
		}
		needy -= amount
		cell.Target[k] += amount
		if i != hot {
			b.Cells[i].Share -= amount
			cell.Share += amount
			b.Loans = append(b.Loans, api.Loan{From: b.Cells[i].Node, To: cell.Node, Amount: amount})
		}
	}
	cell.Refused[k] = math.Max(0, needy)
}

// scripted is a Backend that plays a scene: half a second for each snapshot.
// mend, if set, changes a snapshot before it goes out.
type scripted struct {
	scene   scene
	reached atomic.Bool // it was asked how far it reaches

	mu        sync.Mutex
	sec       float64
	hold      bool // stand still
	frozen    bool
	freezeErr error
	ready     bool
	mend      func(*api.Status)
	explained []string // cells asked for
	changes   []api.ChangeRequest
	changeErr error
}

func (b *scripted) Status() api.Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hold {
		b.sec += 0.5
	}
	st := b.scene.at(b.sec)
	st.Frozen = b.frozen
	if b.mend != nil {
		b.mend(&st)
	}
	return st
}

// set changes the script under its lock.
func (b *scripted) set(change func(*scripted)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

func (b *scripted) Change(r api.ChangeRequest) (api.Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(b.changes, r)
	return api.Change{Epoch: "2-00000000000000aa", State: api.ChangeSpreading, Plan: []string{"limit"}}, b.changeErr
}

func (b *scripted) Progress(epoch string) (api.Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return api.Change{Epoch: epoch, State: api.ChangeInForce}, b.changeErr
}

func (b *scripted) EndTrial(promote bool) (api.Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(b.changes, api.ChangeRequest{Name: fmt.Sprint("promote ", promote)})
	return api.Change{}, b.changeErr
}

func (b *scripted) Explain(budget, class, node string) (api.Explanation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.explained = append(b.explained, budget+"|"+class+"|"+node)
	if budget != b.scene.budgets[0] {
		return api.Explanation{}, fmt.Errorf("budget %q: %w", budget, ErrNotFound)
	}
	if class == "broken" {
		return api.Explanation{}, fmt.Errorf("the allocator is on fire")
	}
	return api.Explanation{
		Budget: budget, Class: class, Node: node, Demand: 18000, Base: 1871, Kept: 1871, Level1: 2513, Borrowed: 3377, Target: 7761, Share: -1,
		Words: []string{
			"It was asked for 18,000/s and keeps all 1,871/s of its own base.",
			"It got 2,513/s that its own class left unused elsewhere, and 3,377/s from class confirmed.",
			"It got no more because nothing unused is left in the budget.",
		},
	}, nil
}

func (b *scripted) Freeze(on bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freezeErr != nil {
		return b.freezeErr
	}
	b.frozen = on
	return nil
}

func (b *scripted) Ready() (bool, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ready {
		return true, "share in force"
	}
	return false, "no config epoch is in force yet"
}

func (b *scripted) Sums() []api.Sum {
	st := b.Status()
	return st.Sums()
}

func (b *scripted) Shares() (s api.Shares) {
	for _, x := range b.Status().Budgets {
		s.Budgets = append(s.Budgets, api.Share{Name: x.Name, Total: x.Share})
	}
	return s
}

// Reach is busy the second time, as if it went on.
func (b *scripted) Reach(context.Context) (api.Reach, error) {
	if b.reached.Swap(true) {
		return api.Reach{}, fmt.Errorf("%w: busy", ErrConflict)
	}
	return api.Reach{Advertised: "192.0.2.1:7946"}, nil
}

func (b *scripted) Healthy() (bool, string) { return true, "" }

// prefill gives the server the five minutes that led up to the script's second.
func prefill(s *Server, b *scripted) {
	now := time.Now().UnixMilli()
	var st api.Status
	for i := range historyPoints {
		if i%4 == 0 { // a large scene takes a while to write
			st = b.scene.at(math.Max(0, b.sec-float64(historyPoints-i)*0.5))
		}
		s.hub.history.record(now-int64(historyPoints-i)*500, st.Sums())
	}
}
