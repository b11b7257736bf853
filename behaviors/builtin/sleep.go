package builtin

import (
	"context"
	"fmt"
	"time"

	"taskledger/behaviors"
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
func Sleep() *behaviors.Bound[SleepParams, behaviors.None] { return bind("sleep", sleep) }

func sleep(ctx context.Context, p SleepParams) (none behaviors.None, err error) {
	timer := time.NewTimer(time.Duration(p.Duration))
	defer timer.Stop()
	select {
	case <-timer.C:
		return none, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}
