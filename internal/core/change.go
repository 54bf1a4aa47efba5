package core

import (
	"errors"
	"fmt"
	"strings"

	"subak/allocator/ledger"
	"subak/internal/epoch"
)

// Change is what an operator asks for.
type Change struct {
	// Document is the wanted content; nil keeps the present one. It may be in any
	// order, and is not changed.
	Document *epoch.Document
	// Forget names nodes that the operator states to be dead, each with the
	// highest incarnation the statement covers; 0 means the highest known here.
	// They lose their base and their place in the roster (rule E6, assumption
	// A7). Fewer than half of the roster, and none that was heard lately.
	Forget map[string]uint64
	// Canary is a node that takes the change up first and alone: everybody else
	// only learns of it, until [Core.Promote] or [Core.Abandon].
	Canary string
	// Revert allows a content that was in force before. Without, it is taken for
	// an old file and refused.
	Revert bool
	// Replace puts this change in the place of the one under way, if any. It is
	// implied by Forget, because the dead are what a change may wait for.
	Replace bool
	// Expect refuses the change unless this is the newest epoch here, in force or
	// under way.
	Expect *ledger.EpochID
	// DryRun makes the plan only.
	DryRun bool
}

// Plan says what a change does.
type Plan struct {
	// Parent is the newest epoch before, Epoch the one that the change makes;
	// both are the same when there is nothing to change. Under DryRun nothing is
	// made, but the same change would get the same id.
	Parent, Epoch ledger.EpochID
	// Replaces is the change under way that this one takes the place of; zero
	// for none.
	Replaces ledger.EpochID
	// Canary is who takes it up first; empty for everybody at once.
	Canary string
	// Differences to the content that was in force or under way, in words, and
	// the bases that differ.
	Differences []epoch.Difference
	Bases       []epoch.BaseChange
	// MustAck are the nodes without whose word no base rises, in order of name.
	MustAck []string
	// Forgotten are the nodes that need not: declared dead. Their bases come
	// back one term after a node has taken the change up.
	Forgotten []string
}

// Reasons for which a change is refused. None of them changes anything.
var (
	// ErrNothingToChange: the content is the one in force or under way.
	ErrNothingToChange = errors.New("nothing to change")
	// ErrOlder: the content was in force before and was replaced since.
	ErrOlder = errors.New("this content was in force before: it is older than what is in force")
	// ErrForeign: the content is of another cluster.
	ErrForeign = errors.New("this content is of another cluster")
	// ErrConflict: the epoch in force is not the one that was expected.
	ErrConflict = errors.New("the cluster has moved on")
	// ErrNotMember: this node is not in the roster; edit at a member.
	ErrNotMember = errors.New("this node is not a member")
	// ErrNotReady: this node does not know for sure what is in force.
	ErrNotReady = errors.New("this node is not sure of what is in force")
	// ErrAlive: a node to be forgotten was heard lately.
	ErrAlive = errors.New("a node to be forgotten is alive")
	// ErrUnknownNode: a named node is not a member.
	ErrUnknownNode = errors.New("no such member")
	// ErrNoCanary: there is no canary under way.
	ErrNoCanary = errors.New("no canary is under way")
	// ErrNotSaved: the memory could not be made durable. The change may still
	// come in force: ask for the progress.
	ErrNotSaved = errors.New("the change could not be saved")
)

// UnderWayError refuses a change because another is not in force yet.
type UnderWayError struct {
	Epoch   ledger.EpochID
	Waiting []string // nodes, each with what is missing
}

// Error says for whom the change under way waits.
func (e *UnderWayError) Error() string {
	if len(e.Waiting) == 0 {
		return fmt.Sprintf("the change to epoch %v is under way", e.Epoch)
	}
	return fmt.Sprintf("the change to epoch %v is under way; it waits for %s", e.Epoch, strings.Join(e.Waiting, ", "))
}
