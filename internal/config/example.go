package config

import _ "embed"

// Example is a complete configuration with a comment on every field. It loads
// without faults.
//
//go:embed example.yaml
var Example string
