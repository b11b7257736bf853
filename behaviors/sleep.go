package behaviors

import (
	"context"
	"fmt"
	"time"
)

// SleepParams are the parameters of "sleep".
type SleepParams struct {
	Duration Duration `json:"duration"` // 0 or more
}

// Validate refuses a negative duration.
func (p SleepParams) Validate() error {
	if p.Duration < 0 {
		return fmt.Errorf("duration %s, want 0 or more", p.Duration)
	}
	return nil
}

// Sleep returns the behavior "sleep", which holds a slot for a time and succeeds.
func Sleep() *Bound[SleepParams, None] {
	return bindBuiltin(Define[SleepParams, None]("sleep", nil), sleep)
}

func sleep(ctx context.Context, p SleepParams) (None, error) {
	timer := time.NewTimer(time.Duration(p.Duration))
	defer timer.Stop()
	select {
	case <-timer.C:
		return None{}, nil
	case <-ctx.Done():
		return None{}, context.Cause(ctx)
	}
}
