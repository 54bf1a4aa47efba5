package report

import (
	"errors"
	"fmt"
	"io"

	"subak/testbed/evidence"
)

// ErrNothing says that the outcomes hold nothing to draw.
var ErrNothing = errors.New("report: nothing to draw")

// Origins writes an SVG file of the origin's rate in runs of one scenario, a
// variant under the other on the same axes. Without outcomes it returns
// ErrNothing.
func Origins(w io.Writer, outcomes []evidence.Outcome) error {
	if len(outcomes) == 0 {
		return ErrNothing
	}
	return writeFile(w, originStack(wide(), runsOf(groups(outcomes)[0])))
}

// Reactions writes an SVG file of how long demand steps took, a curve for each
// outcome that timed some. Without any it returns ErrNothing.
func Reactions(w io.Writer, outcomes []evidence.Outcome) error {
	var all []*evidence.Outcome
	for i := range outcomes {
		all = append(all, &outcomes[i])
	}
	curves, lines := reactions(all)
	if len(curves) == 0 {
		return ErrNothing
	}
	return writeFile(w, reactionStack(wide(), curves, lines))
}

func writeFile(w io.Writer, k stack) error {
	s := newSheet()
	d, err := s.stack(wide(), k)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, s.file(d)); err != nil {
		return fmt.Errorf("report: write figure: %w", err)
	}
	return nil
}
