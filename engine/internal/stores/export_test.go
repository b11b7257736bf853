package stores

// Lines is how many groups are known.
func (w *Waiters) Lines() int { return len(w.lines) }
