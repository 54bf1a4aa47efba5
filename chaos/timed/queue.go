package timed

// kind says what an event is.
type kind uint8

const (
	arrives  kind = iota // a packet reaches to
	pulls                // to exchanges whole states with a peer
	stateful             // a push/pull state reaches to
	wakes                // the timer of to's loop fires
	requests             // the requests of a stretch of time reach to
	edge                 // an instant next to a lease's end on to's clock
	watches              // to's watchdog looks, during a stall
	begins               // fault gen begins
	ends                 // fault gen ends
	poisons              // an attacker sends
	probes               // the checkers of quiet times look
)

// event is something that happens at a true instant.
type event struct {
	at     int64  // ns of true time
	serial uint64 // order among events of one instant
	arg    int64
	data   []byte
	gen    uint32 // what it belongs to: a life, a wake-up, a fault
	from   int16
	to     int16
	kind   kind
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.serial < o.serial
}

// queue is a heap of four children to a node: fewer and nearer levels than with
// two.
type queue struct {
	heap   []event
	serial uint64
}

// add puts an event in; events of one instant happen in the order of adding.
func (q *queue) add(e event) {
	q.serial++
	e.serial = q.serial
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&q.heap[up]) {
			break
		}
		q.heap[i] = q.heap[up]
		i = up
	}
	q.heap[i] = e
}

// next takes the first event out; the queue is not empty.
func (q *queue) next() event {
	first := q.heap[0]
	n := len(q.heap) - 1
	e := q.heap[n]
	q.heap[n] = event{}
	q.heap = q.heap[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		least := -1
		for c := 4*i + 1; c < min(4*i+5, n); c++ {
			if least < 0 || q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if least < 0 || !q.heap[least].before(&e) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = e
	return first
}
