package apply

import (
	"context"
	"errors"
	"strings"
	"time"

	"taskledger/item"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// Schedules sets and reads schedules, as engine.Schedules does.
type Schedules interface {
	SetWith(
		ctx context.Context, name string, d schedule.Definition, how schedule.Setting,
	) (v schedule.Version, changed bool, err error)
	Get(ctx context.Context, name string) (schedule.Schedule, error)
	List(
		ctx context.Context, f schedule.Filter, after string, limit int,
	) (all []schedule.Schedule, more bool, err error)
	Delete(ctx context.Context, name string, seen schedule.Version) error
}

// Nodes asks nodes, as engine.Operations does.
type Nodes interface {
	Nodes(ctx context.Context) ([]store.NodeInfo, error)
	Ask(ctx context.Context, session, name string, question []byte) ([]byte, error)
}

// Stores reads and changes task stores, as engine.Stores does.
type Stores interface {
	Update(ctx context.Context, store string, u *item.Update) ([]item.Item, error)
	Group(ctx context.Context, store string, p item.Page) (items []item.Item, more bool, err error)
}

// Applier applies files. It may be used concurrently.
type Applier struct {
	Schedules Schedules
	Nodes     Nodes
	Stores    Stores
	// Shards returns the number of shards of the cluster, of which large files alone ask. nil = it is not known: what a
	// shard does not hold is refused when it is applied.
	Shards func(ctx context.Context) (int, error)
	By     string // who asks, for the record of applied files; at most 256 bytes count
	// Pause waits for so long, or until ctx ends. nil = by the clock.
	Pause func(ctx context.Context, d time.Duration)
}

// RefusedError reports why a file cannot be applied to the cluster as it is. Nothing was changed, unless somebody else
// made a schedule of the same name meanwhile.
type RefusedError struct {
	Problems []string // each begins with the id of a collection
}

// Error has a line for each problem.
func (e *RefusedError) Error() string { return strings.Join(e.Problems, "\n") }

const (
	// tries bounds how often something is asked for that is refused as things are just now.
	tries = 3

	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

func (a *Applier) pause(ctx context.Context, d time.Duration) {
	if a.Pause != nil {
		a.Pause(ctx, d)
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// repeat sends a command, and the same again as long as nobody knows what became of it, until ctx ends. again reports
// that it may have been carried out before its last answer.
func (a *Applier) repeat(ctx context.Context, send func() error) (again bool, err error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err = send()
		unknown := errors.Is(err, task.ErrUnknown)
		if !unknown && !errors.Is(err, store.ErrUnavailable) {
			return again, err
		}
		if a.pause(ctx, pause); ctx.Err() != nil {
			return again, err
		}
		again = again || unknown
	}
}
