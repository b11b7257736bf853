package check

// checkBatches holds that no batch was decided twice: the numbers of a sender's lane grow.
func (c *checker) checkBatches() {
	type lane struct {
		sender string
		lane   uint8
	}
	for shard, j := range c.shards {
		last := map[lane]uint64{}
		for _, e := range j.entries {
			for _, o := range e.Origins {
				if o.Batch != 0 { // a caller behind one
					continue
				}
				l := lane{o.Sender, o.Lane}
				if o.Number <= last[l] {
					c.report(once, shard, e.Number, "batch %d of %s, lane %d, was decided again after batch %d", o.Number, o.Sender, o.Lane, last[l])
				}
				last[l] = max(last[l], o.Number)
			}
		}
	}
}
