package config

// ParseChange reads what a running cluster can take from a file: cluster.name,
// nodes and budgets. The file may be a whole configuration, of which the rest is
// read but not judged, or those fields alone. Where it lists no nodes, roster,
// the present one, stands in; where it lists no budgets, Budgets stays empty.
// cluster.name may be missing. name is the file's name in messages. The error, if
// any, is a [Faults] with everything that is wrong.
func ParseChange(name string, data []byte, roster []Node) (*Config, error) {
	c, r := Default(), newReport(name)
	decodeFile(r, name, data, c)
	if !r.bad[""] {
		k := &checker{r, c, false}
		k.change(roster)
	}
	if len(r.faults) > 0 {
		return nil, r.sorted()
	}
	return c, nil
}

func (k *checker) change(roster []Node) {
	k.c.Listeners = nil // each node's own
	if k.given("cluster.name") {
		k.name("cluster.name", k.c.Cluster.Name)
	}
	if !k.given("nodes") && !k.given("budgets") && len(k.faults) == 0 {
		k.unreadable(k.main, "", "changes nothing: it has neither nodes nor budgets", "write the whole list of budgets, of nodes, or both, as in the output of subak config example")
		return
	}
	if k.given("nodes") {
		k.nodes()
	} else {
		k.c.Nodes = roster
	}
	if k.given("budgets") {
		k.budgets()
	}
	if len(k.faults) == 0 {
		k.specs()
	}
}
