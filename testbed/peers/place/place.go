// Package place decides where the processes of a benchmark run, the same for both
// sides of every comparison, and reads what CPU they use.
package place

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// Place is which cores the servers get and which the rest does: the generator
// and the backend. The servers' half is the last one. With one core alone all
// share it, and rates say little.
type Place struct {
	Rest, Server []int
	Pinned       bool // every process is told; false where that cannot be done
}

// split divides the cores that this process may use.
func split(cpus []int) Place {
	if len(cpus) < 2 {
		return Place{}
	}
	half := len(cpus) / 2
	return Place{Rest: cpus[:len(cpus)-half], Server: cpus[len(cpus)-half:], Pinned: true}
}

// String says it to a reader.
func (p Place) String() string {
	if !p.Pinned {
		return fmt.Sprintf("no process is bound to a core; %d cores", runtime.NumCPU())
	}
	return fmt.Sprintf("servers on core %s, load generator and backend on core %s", list(p.Server), list(p.Rest))
}

// list writes cores as 0,1,2.
func list(cpus []int) string {
	text := make([]string, len(cpus))
	for i, c := range cpus {
		text[i] = strconv.Itoa(c)
	}
	return strings.Join(text, ",")
}

// parse reads what list wrote.
func parse(text string) ([]int, error) {
	var cpus []int
	for _, t := range strings.Split(text, ",") {
		c, err := strconv.Atoi(t)
		if err != nil || c < 0 {
			return nil, fmt.Errorf("core %q: want a number", t)
		}
		cpus = append(cpus, c)
	}
	return cpus, nil
}

// Command is how a program is started on some cores: by way of this program,
// which binds itself and then becomes the other one.
func (p Place) Command(self string, cpus []int, path string, args ...string) []string {
	if !p.Pinned {
		return append([]string{path}, args...)
	}
	return append([]string{self, "pin", list(cpus), path}, args...)
}
