package gate

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// armings counts what reaches the poller.
type armings struct {
	net.Conn
	n int
}

func (a *armings) SetReadDeadline(t time.Time) error {
	a.n++
	return a.Conn.SetReadDeadline(t)
}

// kept returns a connection that brings nothing, and closes it at the test's end.
func kept(p *patience) (c *patient, below *armings, end func()) {
	near, far := net.Pipe()
	below = &armings{Conn: near}
	c = p.keep(below)
	return c, below, func() { _ = c.Close(); _ = far.Close() }
}

func TestAReadDeadlineIsMetToTheInstantHoweverFarOff(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		waits := rapid.SliceOfN(rapid.Int64Range(-2000, 130_000), 1, 4).Draw(rt, "deadlines in ms")
		pauses := rapid.SliceOfN(rapid.Int64Range(0, 3500), len(waits), len(waits)).Draw(rt, "pauses in ms")
		synctest.Test(t, func(t *testing.T) {
			p := &patience{begin: time.Now().Add(-time.Minute)}
			c, _, end := kept(p)
			for i, wait := range waits {
				time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
				start := time.Now()
				if err := c.SetReadDeadline(start.Add(time.Duration(wait) * time.Millisecond)); err != nil {
					rt.Fatal(err)
				}
				_, err := c.Read(make([]byte, 1))
				if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took != time.Duration(max(wait, 0))*time.Millisecond {
					rt.Errorf("a read until %d ms from now took %v: %v", wait, took, err)
				}
			}
			end()
		})
	})
}

func TestADeadlineThatIsClearedDoesNotEndARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patience{begin: time.Now().Add(-time.Minute)}
		c, _, end := kept(p)
		for _, wait := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, time.Minute} {
			_ = c.SetReadDeadline(time.Now().Add(wait))
			time.Sleep(wait - time.Millisecond) // armed by now
			_ = c.SetReadDeadline(time.Time{})
			read := make(chan error, 1)
			go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
			time.Sleep(5 * time.Minute)
			select {
			case err := <-read:
				t.Fatalf("a deadline of %v that was cleared: %v", wait, err)
			default:
			}
			_ = c.SetReadDeadline(time.Unix(1, 0)) // as net/http interrupts a read
			if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("interrupted: %v", err)
			}
		}
		end()
	})
}

func TestADeadlineThatIsSetBeforeEveryRequestIsNotHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patience{begin: time.Now().Add(-time.Minute)}
		c, below, end := kept(p)
		for range 1000 {
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
			_ = c.SetReadDeadline(time.Time{})
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			_ = c.SetReadDeadline(time.Time{})
			time.Sleep(10 * time.Millisecond)
		}
		if below.n != 0 {
			t.Errorf("the poller was told of %d deadlines, want none", below.n)
		}
		end()
	})
}

// A bubble with a goroutine left in it fails: so the looks end with the last
// connection, and begin again with the next.
func TestLooksAreMadeWhileThereAreConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patience{begin: time.Now().Add(-time.Minute)}
		for range 3 {
			c, _, end := kept(p)
			_, _, endOther := kept(p)
			endOther()
			start := time.Now()
			_ = c.SetReadDeadline(start.Add(10 * time.Second))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 10*time.Second {
				t.Errorf("a read until 10s took %v: %v", time.Since(start), err)
			}
			end()
			end() // closing twice does no harm
			time.Sleep(time.Hour)
		}
	})
}
