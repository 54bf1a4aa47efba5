// Package schedule is the adversary without a timing model: it simulates the
// product's ledgers under any order of events.
//
// # Model
//
// A world holds up to 60 names and up to 5 budgets. At each step the adversary
// does one thing: somebody publishes, any row ever sent is delivered to anybody,
// time passes, a process pauses, crashes or starts, an operator edits, forces
// or freezes. Every process enforces, by its own drifting clock, the schedule
// that its shell installed last. Only the assumptions A1 to A7 of the design
// bind the adversary; comments name them where they do.
//
// What happens is a list of primitive [Action]s. The adversary's choices are
// made when an action is made; what an action does depends on it and the state
// alone, and one whose object does not exist does nothing. So any sublist of a
// schedule can be run, which is what shrinking needs.
//
// How the adversary chooses is a [Profile]: weights and habits as data. Odd
// interplay (a restart in the middle of an edit while loans are out and the
// witness is behind) comes up often only where a profile asks for it.
//
// # Checkers
//
// On true values, whenever one may have changed:
//
//   - budget: over all live processes the enforced rates add up to at most the
//     budget of the greatest epoch that was ever activated;
//   - cover (I2): no process may use more of a loan than its lender counts as
//     lent, while the lender is past its quarantine;
//   - claims (I4): what nodes may use or have lent of their own bases adds up
//     to at most the budget;
//   - heal: when all faults end and everybody talks, everybody is proved and
//     active on one epoch, and the only demand gets the whole budget, within a
//     stated number of rounds.
//
// # Concurrency
//
// A Runner belongs to one goroutine; it reuses its world.
package schedule
