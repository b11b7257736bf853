package projection

// Kinds is how many kinds, and behaviors, the shard keeps something of.
func (s *Shard) Kinds() (kinds, groups int) { return len(s.kinds), len(s.groups) }
