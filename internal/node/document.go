package node

import (
	"subak/enforce"
	"subak/internal/config"
	"subak/internal/epoch"
)

// document is the part of a configuration that all nodes must agree on.
func document(cfg *config.Config) *epoch.Document {
	d := &epoch.Document{Cluster: cfg.Cluster.Name}
	for _, n := range cfg.Roster() {
		d.Nodes = append(d.Nodes, epoch.Node{Name: n.Name, Weight: n.Weight})
	}
	for i, spec := range cfg.Specs() {
		b := &cfg.Budgets[i]
		d.Budgets = append(d.Budgets, epoch.Budget{
			Name: b.Name, Unit: string(b.Limit.Unit), Burst: b.Burst, Revocable: b.Revocable, Shadow: b.Shadow, Spec: spec,
			Tenants: tenants(b),
		})
	}
	return d
}

// tenants are the bounds on the tenants of a budget's classes.
func tenants(b *config.Budget) (out []epoch.Tenants) {
	for k, t := range b.TenantConfigs() {
		if t != (enforce.TenantConfig{}) {
			out = append(out, epoch.Tenants{Class: b.Classes[k].Name, SharePPM: t.Share, Rate: t.Rate, Burst: t.Burst, Keys: t.Keys})
		}
	}
	return out
}

// changed is what a file of [config.ParseChange] makes of the present document:
// what the file leaves out stays.
func changed(cfg *config.Config, present *epoch.Document) *epoch.Document {
	d := document(cfg)
	if d.Cluster == "" {
		d.Cluster = present.Cluster
	}
	if len(d.Budgets) == 0 {
		d = present.WithNodes(d.Nodes)
	}
	return d
}

// roster is the present document's nodes in the form of a configuration.
func roster(present *epoch.Document) []config.Node {
	nodes := make([]config.Node, len(present.Nodes))
	for i, n := range present.Nodes {
		nodes[i] = config.Node{Name: n.Name, Weight: n.Weight}
	}
	return nodes
}
