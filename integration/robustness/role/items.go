package role

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"taskledger/engine"
	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/keepers"
	"taskledger/item"
)

// Clients of task stores in a process of a client, and of a node.
const (
	clientKeepers = 2
	nodeKeepers   = 1
)

// ItemCall is a call to a task store, told when it begins, without an Answer, and again when it has ended.
type ItemCall struct {
	Number int64 // of those of the source
	Source string
	history.ItemCall
}

// keepStores has clients of task stores make calls until ctx ends. No other process of the run has the source, and this one has it once.
func (p *process) keepStores(ctx context.Context, c *engine.Client, source string, count int) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(source))
	of := h.Sum64()
	k := keepers.Keepers{First: 1 + int64(of%(item.MaxNumber-100)), Patience: askWithin, Patient: context.Background(),
		Over: func() bool { return ctx.Err() != nil },
		Rest: func(d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		},
		Now:    func() int64 { return clock.Now() - p.Begin },
		Client: func() (*engine.Client, context.Context) { return c, context.Background() },
		Tell:   func(number int64, call history.ItemCall) { p.say(Word{Item: &ItemCall{number, source, call}}) },
		Damage: func(format string, args ...any) { p.say(Word{Damage: fmt.Sprintf(format, args...)}) },
	}
	k.Keep(count, p.Seed^of)
}
