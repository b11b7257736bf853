package cron

import (
	"fmt"
	"time"
)

// maxEvery bounds the distance of @every.
const maxEvery = 365 * 24 * time.Hour

// parseEvery reads the duration of @every.
func parseEvery(text string) (time.Duration, error) {
	every, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("@every: %q is no duration such as 90s, 15m or 1h30m", text)
	case every < time.Second || every > maxEvery:
		return 0, fmt.Errorf("@every: %s, want 1s to 8760h", text)
	case every%time.Second != 0:
		return 0, fmt.Errorf("@every: %s, want whole seconds", text)
	}
	return every, nil
}

// multipleFrom returns the first time, t or later, that is a multiple of every since 1970.
func multipleFrom(t int64, every time.Duration) (int64, bool) {
	n := int64(every / time.Second)
	t = (max(t, 0) + n - 1) / n * n
	return t, t < end-reachSeconds
}

// multipleUpTo returns the last time, t or earlier, that is a multiple of every since 1970.
func multipleUpTo(t int64, every time.Duration) (int64, bool) {
	n := int64(every / time.Second)
	t = min(t, end-reachSeconds-1)
	return t / n * n, t >= 0
}
