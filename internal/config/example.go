package config

import _ "embed"

//go:embed example.yaml
var example string

// Example is a complete configuration with a comment on every field. It loads
// without faults.
func Example() string { return example }
