package gate

import "github.com/prometheus/client_golang/prometheus"

type serverCollector struct {
	servers                                     func() []*Server
	open, refused, misframed, handshakes, files *prometheus.Desc
	expires                                     *prometheus.Desc
}

// NewServerCollector collects what the present servers of a process count, one
// per listener name.
func NewServerCollector(servers func() []*Server) prometheus.Collector {
	return &serverCollector{
		servers:    servers,
		open:       desc("gate_connections", "Connections of clients that are open.", "listener"),
		refused:    desc("gate_connections_refused_total", "Connections closed at once because there were too many.", "listener"),
		misframed:  desc("gate_misframed_total", "HTTP/1 connections refused because requests on them could be framed in two ways.", "listener"),
		handshakes: desc("gate_tls_handshake_failures_total", "TLS handshakes that failed.", "listener"),
		files:      desc("gate_tls_reloads_total", "Looks at changed TLS files, by result: loaded, or refused and the ones of before kept.", "listener", "result"),
		expires:    desc("gate_tls_expires_timestamp_seconds", "When the certificate in force ends.", "listener"),
	}
}

// Describe implements prometheus.Collector.
func (c *serverCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.open, c.refused, c.misframed, c.handshakes, c.files, c.expires} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *serverCollector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.servers() {
		ch <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(s.open.Load()), s.name)
		counter(ch, c.refused, s.refused.Load(), s.name)
		counter(ch, c.misframed, s.misframed.Load(), s.name)
		if s.files == nil {
			continue
		}
		loaded, kept := s.files.Counts()
		counter(ch, c.handshakes, s.handshakes.Load(), s.name)
		counter(ch, c.files, loaded, s.name, "loaded")
		counter(ch, c.files, kept, s.name, "refused")
		ch <- prometheus.MustNewConstMetric(c.expires, prometheus.GaugeValue, float64(s.files.Expires().Unix()), s.name)
	}
}
