// Package demo shows, on real processes and real requests, what Subak promises:
// an origin that enforces nothing stays at its cap while a flood hits one of five
// nodes, and the capacity goes where the demand is.
//
// Model: five "subak run" children on 127.0.0.1 to 127.0.0.5 with uneven weights
// and one budget of two classes; an origin in a process of its own; an open-loop
// generator in this process; a script of phases (see [script]). Afterwards three
// witnesses are heard: the generator (what was offered and answered), the origin
// (what came, and when) and the nodes' own counters and shares.
//
// The verdict can fail in two ways. The budget is broken when in any phase and
// window more arrived at the origin, or more was admitted by the nodes' counters,
// than the bound allows: limit*(w+spread) + limit*burst + one request for each
// bucket. The spread is the p99.9 of the time from generator to origin, and the
// claim is made for the arrivals that were no slower. And the run is void when it
// shows nothing: the flood stayed below the limit, the killed node was not
// missed, requests got lost on the way.
//
// Rates here are float64 requests/s, for people; nothing is decided by them but
// what to print. Run is called once at a time per process; all goroutines,
// processes and files it makes are gone when it returns. Killed by kill -9, it leaves
// only its directory below the temporary one: the kernel ends the children.
package demo
