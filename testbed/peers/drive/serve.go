package drive

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// order is a line that a parent sends to a generator that is its child.
type order struct {
	Dial  *Target       `json:"dial,omitempty"`  // connect to one more target
	Index int           `json:"index,omitempty"` // of the target, in the order of dialling
	Span  time.Duration `json:"span,omitempty"`  // drive it for so long,
	Count int64         `json:"count,omitempty"` // or so many times
}

// reply answers an order.
type reply struct {
	Batch
	Error string `json:"error,omitempty"`
}

// Serve is the generator as a process of its own: it obeys orders, one a line,
// until in ends.
func Serve(in io.Reader, out io.Writer) error {
	var drivers []*Driver
	defer func() {
		for _, d := range drivers {
			d.Close()
		}
	}()
	dec, enc := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var o order
		if err := dec.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("drive: order: %w", err)
		}
		var r reply
		var err error
		switch {
		case o.Dial != nil:
			var d *Driver
			if d, err = Dial(*o.Dial); err == nil {
				drivers = append(drivers, d)
			}
		case o.Index < 0 || o.Index >= len(drivers):
			err = fmt.Errorf("no target %d", o.Index)
		case o.Count > 0:
			r.Batch, err = drivers[o.Index].Count(o.Count)
		default:
			r.Batch, err = drivers[o.Index].For(o.Span)
		}
		if err != nil {
			r.Error = err.Error()
		}
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("drive: reply: %w", err)
		}
	}
}

// Remote gives orders to a generator at the other end of a pair of pipes. Its
// calls exclude each other in time: one caller.
type Remote struct {
	enc   *json.Encoder
	dec   *json.Decoder
	count int
}

// NewRemote returns a remote that writes its orders to out and reads the replies
// from in.
func NewRemote(in io.Reader, out io.Writer) *Remote {
	return &Remote{enc: json.NewEncoder(out), dec: json.NewDecoder(in)}
}

// Dial connects the generator to one more target and returns its index.
func (r *Remote) Dial(t Target) (int, error) {
	if _, err := r.do(order{Dial: &t}); err != nil {
		return 0, err
	}
	r.count++
	return r.count - 1, nil
}

// For drives a target for a time.
func (r *Remote) For(index int, span time.Duration) (Batch, error) {
	return r.do(order{Index: index, Span: span})
}

// Count sends a target a number of requests.
func (r *Remote) Count(index int, n int64) (Batch, error) {
	return r.do(order{Index: index, Count: n})
}

func (r *Remote) do(o order) (Batch, error) {
	if err := r.enc.Encode(o); err != nil {
		return Batch{}, fmt.Errorf("order the generator: %w", err)
	}
	var got reply
	if err := r.dec.Decode(&got); err != nil {
		return Batch{}, fmt.Errorf("reply of the generator: %w", err)
	}
	if got.Error != "" {
		return got.Batch, fmt.Errorf("generator: %s", got.Error)
	}
	return got.Batch, nil
}
