package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/store"
	"taskledger/task"
)

// silentBus delivers no message to anybody.
type silentBus struct{ store.Bus }

func (silentBus) Publish(string, string, []byte) error { return nil }

func (silentBus) Subscribe(context.Context, string, string, func(store.Message)) error { return nil }

func (silentBus) Notify(_ context.Context, h func(bool)) error {
	h(true)
	return nil
}

// A client without a store asks the owner of shard 0 how many shards there are, and sends its calls a second later
// though nobody has answered.
func TestClient_SendsAlthoughNobodySaysHowManyShardsThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := engine.NewClient(engine.ClientConfig{Bus: silentBus{}, Shards: 4})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		if err := c.Operations().Cancel(short, "x", ""); !errors.Is(err, task.ErrUnknown) {
			t.Errorf("cancel: %v, want one that was sent and not answered", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
