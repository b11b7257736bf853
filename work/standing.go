package work

import (
	"context"
	"time"
)

// standsFreely bounds how often in a row a source may tell one position without being slowed down.
const standsFreely = 10

// standing slows down a source that tells one position in a row, as one that polls may, without ever coming to an end.
// The zero value has heard nothing.
type standing struct {
	token string
	times int
	at    time.Time // when it was heard last
}

// again waits before a position is heard again, until a second has passed since it was heard, and reports whether that
// is so for the first time.
func (s *standing) again(ctx context.Context, position bool, token string) (slowed bool) {
	if !position || token != s.token {
		*s = standing{}
	}
	if !position {
		return false
	}
	if s.times++; s.times > standsFreely {
		wait := time.NewTimer(time.Second - time.Since(s.at))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	s.token, s.at = token, time.Now()
	return s.times == standsFreely+1
}
