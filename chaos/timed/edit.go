package timed

// edit lets an operator change the config at h.
func (w *world) edit(h *host, seed int64) {}

// followEpoch notes what h adopted and activated.
func (w *world) followEpoch(h *host) {
	if h.up {
		h.epoch, h.active = h.led.Epoch().ID, h.led.Active()
		if w.greatest.Less(h.active) {
			w.greatest = h.active
		}
	}
}
