// Package config turns one YAML file, the environment and command-line flags
// into a checked, typed configuration.
//
// # Model
//
// The structs of this package are the schema: the decoder walks the YAML tree
// beside them by reflection, so a field exists in the file, in the environment
// and as a flag as soon as it exists in a struct. Flags win over the
// environment, the environment over the file, a later file over an earlier one,
// and everything over the defaults in the struct tags.
//
// The name of a field outside a list gives its other two names: gossip.listen
// is SUBAK_GOSSIP_LISTEN and --gossip-listen. The one exception is node.name,
// which every process of a cluster sets: SUBAK_NODE and --node. Lists are
// written with commas there. Secrets have no flag, because flags show in ps.
//
// # Faults
//
// Loading never stops at the first mistake. Every [Fault] carries the file and
// line (or the variable, or the flag), the path of the field, what is wrong and
// what to write instead. Unknown names are faults, never ignored: a typo in a
// limiter's file must not mean "no limit" (lesson O26).
//
// # Units
//
// Rates become [allocator.Rate] micro-units per second, percentages parts per
// million, durations [time.Duration]; all from exact decimals, never through
// floating point.
//
// # Concurrency
//
// Loading is sequential. A loaded [Config] is never written again and may be
// read from any goroutine.
package config
