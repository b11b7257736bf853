package taskjson

import (
	"fmt"

	"taskledger/events"
	"taskledger/store"
)

// baseFactor is more seconds than 31,000 years have: a higher base always comes first.
const baseFactor = 1_000_000_000_000

// Score returns base x 10^12 - the seconds from 1970 to the creation: the higher one comes first. It is above 0 and
// within an int64 for a base of 1 to 9,223,371 (events.MaxPriority) and a creation in the years 1970 to 9999, and
// returns a *store.InvalidError for others, which names priority or created_at.
func Score(base int64, created events.Millis) (int64, error) {
	if base < 1 || base > events.MaxPriority {
		problem := fmt.Sprintf("%d, want 1 to %d", base, events.MaxPriority)
		return 0, &store.InvalidError{Field: "priority", Problem: problem}
	}
	if created <= 0 || created > events.MaxTick {
		problem := fmt.Sprintf("%d ms since 1970, want 1 to %d", created, events.MaxTick)
		return 0, &store.InvalidError{Field: "created_at", Problem: problem}
	}
	return base*baseFactor - int64(created)/1000, nil
}
