package cluster

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"taskledger/engine"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/item"
)

// Clients of task stores in a process of a client, and of a node.
const (
	storeClientsOfClient = 2
	storeClientsOfNode   = 1
)

// keepStores has clients of task stores make calls until ctx ends. No other process of the run has the source, and this one has it once.
func (p *inRole) keepStores(ctx context.Context, c *engine.Client, source string, count int) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(source))
	of := h.Sum64()
	k := traffic.StoreClients{First: 1 + int64(of%(item.MaxNumber-100)), Timeout: askWithin, Waits: context.Background(),
		Over: func() bool { return ctx.Err() != nil },
		Rest: func(d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		},
		Now:    func() int64 { return history.Now() - p.Begin },
		Client: func() (*engine.Client, context.Context) { return c, context.Background() },
		Tell: func(number int64, call history.ItemCall) {
			p.say(Word{Item: &traffic.ItemCall{Number: number, Source: source, ItemCall: call}})
		},
		Damage: func(format string, args ...any) { p.say(Word{Damage: fmt.Sprintf(format, args...)}) },
	}
	k.Keep(count, p.Seed^of)
}
