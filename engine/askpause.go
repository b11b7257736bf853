package engine

import "time"

const (
	// rebalanceDelay is the time from the begin of a session until it asks for shards that others serve well.
	rebalanceDelay = 5 * time.Second
	// askAgain is the first pause before a shard whose owner has not handed it over is asked for again. It doubles
	// up to rebalanceDelay.
	askAgain = 250 * time.Millisecond
)

// askPauses holds by shard the pause in which its owner is not asked to hand it over.
type askPauses map[int]askPause

type askPause struct {
	until time.Time
	lasts time.Duration
}

// over reports whether a shard may be asked for.
func (a askPauses) over(shard int, now time.Time) bool { return now.After(a[shard].until) }

// extend begins a pause of a shard. It is doubled, up to most, as long as one soon follows the other.
func (a askPauses) extend(shard int, now time.Time, least, most time.Duration) {
	pause := a[shard]
	if now.Sub(pause.until) > rebalanceDelay {
		pause.lasts = 0
	}
	pause.lasts = min(max(2*pause.lasts, least), most)
	pause.until = now.Add(pause.lasts)
	a[shard] = pause
}
