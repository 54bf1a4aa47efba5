package config

import "cmp"

// ParseChange reads what a running cluster can take from a file: cluster.name,
// nodes and budgets. The file may be a whole configuration, of which the rest is
// read but not judged, or those fields alone. Where it lists no nodes, roster,
// the present one, stands in; where it lists no budgets, Budgets stays empty.
// cluster.name may be missing. name is the file's name in messages; "" is "the
// change". The error, if any, is a [Faults] with everything that is wrong.
func ParseChange(name string, data []byte, roster []Node) (*Config, error) {
	name = cmp.Or(name, "the change")
	c, r := Default(), newReport(name)
	r.Decode(name, data, c)
	if !r.Bad("") {
		k := &checker{r, c, false}
		k.change(roster)
	}
	if !r.OK() {
		return nil, r.Faults()
	}
	return c, nil
}

func (k *checker) change(roster []Node) {
	k.c.Listeners, k.c.Envoy = nil, nil // each node's own
	if k.Given("cluster.name") {
		k.name("cluster.name", k.c.Cluster.Name)
	}
	if !k.Given("nodes") && !k.Given("budgets") && k.OK() {
		k.Unreadable(k.Place(""), "", "changes nothing: it has neither nodes nor budgets", "write the whole list of budgets, of nodes, or both, as in the output of subak config example")
		return
	}
	if k.Given("nodes") {
		k.nodes()
	} else {
		k.c.Nodes = roster
	}
	if k.Given("budgets") {
		k.budgets()
	}
	if k.OK() {
		k.specs()
	}
}
