// Package doors holds the configuration of other proxies that ask Subak, as its
// users are shown it in docs/doors.md, and tests it from outside: a real node, the
// real proxy, real clients.
//
// # Model
//
// A test starts a node, an origin that counts what it gets, and one proxy between
// the clients and the origin, each as a process of its own on loopback. The files
// of this directory are used as they are but for addresses. The node's class
// "uncleared" has no tokens for as long as a test lasts and its class "confirmed"
// has plenty, so that which of the two a request was charged to shows in its
// answer, and no test waits for a bucket.
//
// # Units
//
// Rates are requests per second.
//
// A proxy that is not installed is skipped with a loud message, and fails the test
// where CI is true; scripts/setup.sh installs all of them on Debian.
package doors
