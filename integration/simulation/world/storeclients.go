package world

import (
	"context"
	"time"

	"taskledger/engine"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

// itemsTold is the invariant that a client of a task store sees broken itself, as package check names it.
const itemsTold = "18 items"

// StoreClients returns clients of task stores, who ask through those that client draws, for as long as somebody waits.
func (r *recorder) StoreClients(waits context.Context, client func() (*engine.Client, context.Context)) *traffic.StoreClients {
	return &traffic.StoreClients{First: 1000, Timeout: 6 * time.Second, Waits: waits, Rest: time.Sleep, Now: r.Now, Client: client,
		Tell: func(_ int64, c history.ItemCall) {
			if c.Answer != "" {
				r.addItemCall(c)
			}
		},
		Damage: func(format string, args ...any) { r.Damage(itemsTold, format, args...) },
	}
}

func (r *recorder) addItemCall(c history.ItemCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Items = append(r.Run.Items, c)
}
