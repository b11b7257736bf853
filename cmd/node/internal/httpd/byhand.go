package httpd

import (
	"context"

	"taskledger/api/operations"
	syncapi "taskledger/api/sync"
	"taskledger/events"
)

// byHand makes runs of collections. A run has the priority of its schedule: schedules take no other one yet.
type byHand struct{ schedules operations.Schedules }

// Run implements sync.Runner.
func (b byHand) Run(ctx context.Context, o syncapi.Order) (id events.TaskID, made bool, err error) {
	h, err := b.schedules.Run(ctx, o.Collection, o.Key, o.Seen)
	if err != nil {
		return "", false, err
	}
	return h.ID(), !h.Joined() || h.Repeated(), nil
}
