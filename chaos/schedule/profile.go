package schedule

// Habit is one thing the adversary does as a step, or as a short scene of
// several.
type Habit uint8

// The habits.
const (
	publishes Habit = iota // one process makes its cycle
	rounds                 // all do, and those that are connected hear it
	delivers               // one row arrives somewhere
	waits                  // a short time passes
	waitsLong              // a term or so passes
	wakes                  // a process acts at the very instant it waits for
	demands                // a demand changes
	rewires                // other links are up
	skews                  // a clock changes its rate
	pauses                 // a process pauses or goes on
	fills                  // a disk is full, or no more
	freezes                // an operator freezes or thaws
	crashes                // a process dies, or a dead name starts
	bounces                // a process dies and is back at once
	edits                  // operators change the config
	echoes                 // a name hears rows of its own name
	replays                // old rows arrive, of lives that are over if possible
	amnesias               // a first start is claimed that is none
	loses                  // a disk is lost
	scenes                 // news, a cut, restarts and edits within it, healing
	shuffles               // all restart within a short time
	races                  // two edits, each heard in full by few
	widows                 // a lender dies with its loans in use, and an operator acts
	hastes                 // a restart and an edit while a former loan is in use
	namesakes              // a dead life is forced out while the next one runs
	leavers                // a borrower leaves, and its lender restarts
	lapses                 // an acknowledged edit is forgotten
	oblivions              // nearly all forget the epoch in force
	comebacks              // a forced-out name is taken in again
	replaces               // a process that hangs is replaced by another of its name

	habitCount
)

// Profile is how an adversary behaves. Weights are relative to one another.
// Lists are choices of which a seed takes one; a choice listed twice is twice as
// likely.
type Profile struct {
	Name string
	// Share of the seeds, relative to other profiles; 0 means never by itself.
	Share int
	// Weights of the habits.
	Weights [habitCount]int
	// Nodes is the number of names, Members the chance (%) that a name beyond
	// the second is in the first roster.
	Nodes   []int
	Members []int
	// Budgets is the number of budgets.
	Budgets []int
	// Disks is the chance (%) that a name has a disk.
	Disks []int
	// Old is the chance (%) that a single delivery is of any row ever sent.
	Old []int
	// Links is the chance (%) that a link is up after rewiring.
	Links []int
	// PassMax bounds short waits, in ms.
	PassMax []int
	// Idle demand: the chance (%) that a demand is 0.
	Idle []int
	// Edits: chances (%) that an edit changes the roster, changes the list of
	// budgets, forces, and has a second one beside it at another node.
	Roster, Budget, Force, Twin []int
	// Heavy is the chance (%) that an edit gives one member nearly everything,
	// a joiner if there is one: then no fault hides in small shares.
	Heavy []int
	// Rush is how many rounds follow an edit or a restart at most.
	Rush []int
	// Back is the chance (%) that a crashed name starts again at once.
	Back []int
	// Regress is the chance (%) that a start has a clock that was set back.
	Regress []int
	// Unsent is the chance (per mille) that a publishing process dies before its
	// row leaves.
	Unsent []int
	// Exact is the chance (%) that the product's allocator computes targets.
	Exact []int
	// Heal is the chance (%) that the run ends with healing.
	Heal []int
	// Opening, if any, is a scripted scene that comes first.
	Opening func(*world)
}

// base is what most profiles share.
func base() Profile {
	return Profile{
		Share: 10,
		Weights: [habitCount]int{publishes: 240, rounds: 50, delivers: 400, waits: 80, waitsLong: 6, wakes: 30, demands: 40,
			rewires: 20, skews: 8, pauses: 12, freezes: 2, echoes: 2, replays: 4},
		Nodes:   []int{3, 3, 4, 4, 5, 5, 6},
		Members: []int{100, 66},
		Budgets: []int{1, 1, 1, 2, 2, 3},
		Disks:   []int{0, 50, 100},
		Old:     []int{0, 5, 20},
		Links:   []int{30, 60, 80, 100},
		PassMax: []int{30, 100, 300},
		Idle:    []int{50},
		Roster:  []int{50}, Budget: []int{0, 0, 10}, Force: []int{0, 20}, Twin: []int{0, 50},
		Heavy:   []int{0, 20, 60},
		Rush:    []int{4},
		Back:    []int{66},
		Regress: []int{0, 25},
		Unsent:  []int{0, 1, 5},
		Exact:   []int{0, 0, 0, 0, 0, 0, 0, 100},
		Heal:    []int{0, 0, 0, 0, 0, 0, 0, 100},
	}
}

func (p Profile) with(name string, share int, change func(*Profile)) Profile {
	p.Name, p.Share = name, share
	change(&p)
	return p
}

// Profiles returns the adversaries that seeds choose from. Each is there because
// some mutant of the protocol was hard to catch without it.
func Profiles() []Profile {
	b := base()
	return append([]Profile{
		// Everything now and then.
		b.with("mixed", 20, func(p *Profile) {
			w := &p.Weights
			w[crashes], w[bounces], w[edits], w[scenes], w[amnesias], w[loses], w[shuffles], w[fills] = 8, 4, 12, 2, 1, 1, 1, 6
		}),
		// Loans come and go, rows arrive late and out of order, nobody crashes.
		b.with("loans", 15, func(p *Profile) {
			w := &p.Weights
			w[demands], w[edits], w[replays], w[waitsLong] = 60, 2, 30, 8
			p.Nodes = []int{3, 3, 4, 5}
			p.Old = []int{0, 5, 20, 40}
			p.Idle = []int{30, 60}
		}),
		// Concurrent edits of rosters and budgets, few crashes.
		b.with("edits", 10, func(p *Profile) {
			w := &p.Weights
			w[edits], w[crashes], w[bounces], w[wakes] = 45, 2, 2, 30
			p.Members = []int{66, 40}
			p.Roster, p.Budget, p.Twin = []int{50, 90}, []int{0, 20}, []int{50, 90}
			p.Links = []int{40, 70, 100}
		}),
		// Restarts within an instant, while the former life's loans are in use.
		b.with("bounces", 15, func(p *Profile) {
			w := &p.Weights
			w[bounces], w[edits], w[waits], w[waitsLong], w[loses], w[fills] = 40, 12, 60, 3, 1, 6
			p.PassMax = []int{30, 100}
			p.Back = []int{100}
			p.Disks = []int{50, 100, 100}
			p.Links = []int{60, 100}
		}),
		// No disks: proof by others is all there is.
		b.with("memoryless", 10, func(p *Profile) {
			w := &p.Weights
			w[bounces], w[crashes], w[edits], w[scenes] = 14, 8, 20, 3
			p.Disks = []int{0, 0, 30}
			p.Roster, p.Twin = []int{50, 80}, []int{0, 50}
			p.Nodes = []int{3, 4, 5, 5, 6, 7}
		}),
		// Operators force out the dead; the dead come back.
		b.with("forces", 15, func(p *Profile) {
			w := &p.Weights
			w[crashes], w[edits], w[scenes], w[waitsLong] = 16, 16, 4, 16
			p.Nodes = []int{3, 4, 5, 5, 6, 7}
			p.Disks = []int{50, 100, 100}
			p.Force = []int{60, 100}
			p.Back = []int{20, 60}
			p.Roster = []int{0, 50}
		}),
		// Scenes: news spreads, a cut, somebody restarts and somebody edits within
		// the cut, and it heals.
		b.with("scenes", 15, func(p *Profile) {
			w := &p.Weights
			w[scenes], w[edits], w[crashes], w[bounces] = 30, 6, 4, 4
			p.Nodes = []int{3, 4, 4, 5, 5, 6}
			p.Force = []int{0, 40}
		}),
		// Edits that race, restarts around them, and deaths of lenders.
		b.with("plots", 40, func(p *Profile) {
			w := &p.Weights
			w[races], w[widows], w[hastes], w[lapses], w[comebacks], w[namesakes], w[leavers], w[rounds] = 12, 8, 8, 8, 6, 6, 6, 20
			w[publishes], w[delivers] = 100, 150
			p.Nodes = []int{3, 4, 5, 5, 6}
			p.Members = []int{50, 66, 100}
			p.Disks = []int{50, 100, 100}
			p.Regress = []int{0}
		}),
		// Forgotten epochs and acknowledgements; without memory it takes five.
		b.with("oblivion", 8, func(p *Profile) {
			w := &p.Weights
			w[lapses], w[oblivions], w[races] = 12, 4, 4
			w[publishes], w[delivers] = 100, 150
			p.Nodes = []int{5, 5, 6, 7}
			p.Members = []int{100}
			p.Disks = []int{0, 0, 20}
			p.Roster = []int{20}
			p.Regress = []int{0}
		}),
		// A start that claims to be the first. Valid while there was no edit yet.
		b.with("amnesia", 3, func(p *Profile) {
			w := &p.Weights
			w[amnesias], w[demands], w[crashes] = 20, 40, 4
			p.Disks = []int{0}
			p.Force = []int{0}
		}),
		// Many names, little of everything.
		b.with("wide", 1, func(p *Profile) {
			w := &p.Weights
			w[crashes], w[bounces], w[edits], w[rounds], w[scenes] = 8, 8, 10, 30, 0
			p.Nodes = []int{8, 8, 10, 12, 16, 24, 60}
			p.Budgets = []int{1, 2, 5}
			p.Links = []int{60, 100}
			p.Heal = []int{0}
		}),
	}, openings(b)...)
}

// ByName returns the profile of that name.
func ByName(name string) (Profile, bool) {
	for _, p := range Profiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}
