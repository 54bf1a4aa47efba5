// Package gossip carries opaque packets between the nodes of one cluster, on
// top of hashicorp/memberlist.
//
// # Model
//
// Every node publishes its own row. Publish sends it straight to every live
// peer (one datagram each) and also queues it for relay, so that a row still
// arrives where the direct link is broken. A packet that reaches a node for the
// first time is queued there for relay too; memberlist itself never forwards
// user broadcasts. Push/pull hands over one bounded blob of state (SetState)
// when nodes join and at random intervals later.
//
// What a packet says is none of this package's business: it asks Config.Key
// for the packet's identity (who, and its order by incarnation and sequence)
// to drop duplicates and to let a newer packet replace an older one in the
// relay queue. Duplicate removal saves work; it is no authority: what is newest
// is decided by the ledger (conservation.md L1). Hence a table entry that has
// not advanced for a few seconds gives way to whatever its publisher says
// next, so that one forged packet from the far future cannot silence a node
// (lesson O18).
//
// # Who is let in
//
// The cluster name is memberlist's label, the key ring encrypts every datagram
// and stream with AES-256-GCM, and the fingerprint of the set of budgets
// travels in the node's metadata and in each frame. A node with another label
// or key cannot speak to us; one with another fingerprint is not taken in as a
// member, gets no rows, and has its rows dropped (lesson O16).
// One exception is made on purpose: a push/pull answers before memberlist
// knows who asks, so a stranger that holds the key and the cluster name does
// receive the state blob; it refuses it by the fingerprint in front of it.
//
// A node that starts without memory in a running cluster does not know the
// fingerprint yet. It announces 0 and is provisional: everybody takes it in as a
// member, so that it can ask for the lineage, but between it and any other node
// only unicast packets pass (SendTo, SendReliable), which the reader of the
// inbox must judge by Message.Fingerprint. Once told (SetFingerprint) it is like
// every other node. Two nodes that both know a lineage are not brought together
// by a provisional one: it relays nothing, and their verdict on each other is
// their own.
//
// # Membership
//
// memberlist never heals a partition once both sides have declared each other
// dead, so one random configured seed is contacted every 5 to 10 s,
// unconditionally, with its name resolved anew each time (lesson O15), together
// with one member that was seen before and is now believed dead. A row from a
// node believed dead makes us contact it at once: it then learns of the
// accusation and refutes it, also after all nodes restarted together
// (lesson O17). Membership says whom to send to; how fresh a node's data
// is must be judged by the rows themselves, since a cut between two nodes that
// both see a third raises no membership event at all.
//
// # Reach
//
// Reach says how far this node gets and is got at: it tries the ways to the seeds
// and asks peers to call back at the address that it announces (reach.go).
//
// # Loss
//
// Every frame of a published row carries a counter of its sender. Gaps in the
// counters of the last 128 rows give the loss on the way from a peer to here;
// half the share of unanswered direct pings (two ways, the last 32) is the
// second estimate. A peer is "lossy" from 5 % in either on, until both are under
// 3 %. Changed rows go out again 25 ms later to lossy peers. The second copies
// are marked and do not count as arrived, else doubling would hide the loss that
// caused it. The counter is used rather than the packets' own sequence because
// the latter may jump.
//
// # Units and bounds
//
// Packets are at most MaxPacket bytes, the state blob at most MaxState. The
// inbox, the relay queue, the duplicate table, the peer table, re-sends and
// streams in flight are all bounded; what overflows is dropped and counted.
//
// # Concurrency
//
// All methods of Gossip are safe for concurrent use. Nothing in a memberlist
// callback blocks. Publish sends from the caller's goroutine, so that a row has
// left when it returns.
package gossip
