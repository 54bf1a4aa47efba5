package answer

import "subak/enforce"

// The parts of an answer, for doors that do not speak net/http themselves.

// Policy returns the name of the class's policy in the RateLimit fields, quoted.
func (c *Class) Policy() string { return c.policy }

// Document returns the problem document of a refusal with the first of
// NewClass's statuses. It is not to be changed.
func (c *Class) Document() []byte { return c.bodies[0].json }

// Window returns the seconds in which a class earns its bucket once over: w of
// the policy, where q is its cap.
func Window(q enforce.Quota) int64 { return window(q) }
