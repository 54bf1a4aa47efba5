package main

import "container/heap"

// queue runs events in virtual time, those of one instant in the order they were
// added.
type queue struct {
	now    int64
	serial int64
	events events
}

type event struct {
	at, serial int64
	do         func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = event{}
	*q = (*q)[:len(*q)-1]
	return last
}

func (q *queue) at(t int64, do func()) {
	q.serial++
	heap.Push(&q.events, event{max(t, q.now), q.serial, do})
}

// until runs what is due up to t, or until stop, which is asked once a
// millisecond, says so. It reports whether stop did.
func (q *queue) until(t int64, stop func() bool) bool {
	asked := q.now
	for len(q.events) > 0 && q.events[0].at <= t {
		e := heap.Pop(&q.events).(event)
		q.now = e.at
		e.do()
		if stop == nil || q.now-asked < 1_000_000 {
			continue
		}
		if asked = q.now; stop() {
			return true
		}
	}
	q.now = t
	return false
}
