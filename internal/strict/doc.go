// Package strict decodes YAML files that people write into structs, and forgives
// nothing: an unknown name, a value of the wrong kind or a number without its
// unit is a fault, never ignored (lesson O26).
//
// # Model
//
// The structs are the schema: the decoder walks the YAML tree beside them by
// reflection and the tags yaml:"name" and default:"text". Values are read from
// their text in the file, so that 0.3 never passes through a float; types with
// an UnmarshalText read their own, and may return a [*ValueError] to say how
// to mend it. A text with a fixed set of values has a method Choices.
//
// Nothing stops at the first mistake. A [Report] collects every [Fault] with the
// file, the line, the path of the field, what is wrong and what to write
// instead; whoever checks the decoded values adds faults by path and need not
// know lines. One mistake gives one message: what follows from it stays silent.
//
// # Bounds
//
// Files are bounded in bytes, lines, nesting, fields and values, and a panic of
// the YAML library is a fault of the file, so bytes from anywhere may be given.
//
// # Concurrency
//
// A Report belongs to one goroutine. Nothing else has state.
package strict
