package cron

// Interval reports whether the times follow one another at a distance, as with an hour of * or */2 or with @every,
// rather than being named.
func (e Expression) Interval() bool { return e.interval || e.every > 0 }
