package core

import "time"

// probeFor is how long the disk is taken for as good as it was last, in ns.
const probeFor = int64(time.Second)

// A row must not leave before the memory that it rests on is on disk. A disk that
// fails must not silence the node either, for then its base would be idle. So
// before anything new would have to be remembered it is tried whether that can
// be: while it cannot, the ledger is on hold and does without.

// save makes the memory durable and tells the ledger how that went.
func (c *Core) save() bool {
	ok := c.out.Save(c.led.Stored()) == nil
	if ok {
		c.saved = c.led.StoredVersion()
		c.led.Saved()
	}
	c.unsaved = !ok
	c.led.Hold(!ok)
	return ok
}

// probe tries the disk, unless that was done just now. Called before what a row
// could not do without if it then failed.
func (c *Core) probe(now int64) {
	if c.probed == 0 || now-c.probed >= probeFor {
		c.probed = now
		c.save()
	}
}

// TryDisk saves the memory now and reports whether that worked.
func (c *Core) TryDisk() bool { return c.save() }

// listens reports whether a node that was started with a memory keeps quiet yet,
// for two ticks at most, until a peer has shown what it knows of former lives:
// that tells whether the memory is an old copy (ledger.Unconfirmed).
func (c *Core) listens(now int64) bool {
	return c.published == 0 && now < c.listenEnd && c.led.Unconfirmed()
}

// Unsaved reports whether the memory cannot be saved at present, and whether
// therefore no row leaves at all.
func (c *Core) Unsaved() (failing, silent bool) {
	return c.unsaved, c.unsaved && c.led.StoredVersion() != c.saved
}
