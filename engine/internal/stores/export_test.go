package stores

// Crowds returns how many groups are known.
func (w *Waiters) Crowds() int { return len(w.crowds) }
