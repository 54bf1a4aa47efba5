package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"subak/internal/api"
)

// alarmDescs are the series of what needs a person.
type alarmDescs struct{ alarm, clockLow, clockHigh, clockWrong *prometheus.Desc }

func newAlarmDescs() alarmDescs {
	one := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("budget_"+name, help, labels, nil)
	}
	return alarmDescs{
		alarm:      one("node_alarm", "1 while an alarm of that kind stands; status says what it is.", "kind"),
		clockLow:   one("clock_rate_low_ppm", "A peer's lease clock gains at least this on this node's, parts per million.", "peer"),
		clockHigh:  one("clock_rate_high_ppm", "A peer's lease clock gains at most this on this node's, parts per million.", "peer"),
		clockWrong: one("clock_beyond_eps", "1 while a peer's clock is proven to run outside of protocol.eps: no loans with it.", "peer"),
	}
}

func (d *alarmDescs) collect(gauge func(*prometheus.Desc, float64, ...string), s *api.Status) {
	stands := map[api.AlarmKind]bool{}
	for _, a := range s.Alarms {
		stands[a.Kind] = true
	}
	for _, k := range []api.AlarmKind{api.AlarmTwin, api.AlarmClock, api.AlarmDisk, api.AlarmMemory} {
		gauge(d.alarm, bit(stands[k]), string(k))
	}
	for _, m := range s.Members {
		if m.Listed && m.Clock != nil {
			gauge(d.clockLow, float64(m.Clock.LowPPM), m.Name)
			gauge(d.clockHigh, float64(m.Clock.HighPPM), m.Name)
			gauge(d.clockWrong, bit(m.Clock.Verdict != "within"), m.Name)
		}
	}
}
