package check

// checkRemains reports what was left after everything had stopped.
func (c *checker) checkRemains() {
	r := &c.run.Remains
	if !r.Checked {
		c.report(clean, 0, 0, "nobody has looked at what remains")
	}
	if r.Leases != 0 {
		c.report(clean, 0, 0, "%d leases remain", r.Leases)
	}
	for _, key := range r.Keys {
		c.report(clean, 0, 0, "key %q remains", key)
	}
	for _, other := range r.Others {
		c.report(clean, 0, 0, "%s", other)
	}
}
