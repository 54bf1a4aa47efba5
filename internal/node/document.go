package node

import (
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
		})
	}
	return d
}
