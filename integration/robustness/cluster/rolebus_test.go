package cluster

import (
	"sync"
	"testing"

	"taskledger/store"
)

// countingBus counts what is published.
type countingBus struct {
	store.Bus
	mu   sync.Mutex
	sent map[string]int // by data
}

func (b *countingBus) Publish(_, _ string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[string(data)]++
	return nil
}

// Every message arrives in the end, some of them twice; off, each arrives once.
func TestRestlessBus_DoublesAndDelaysAndLosesNone(t *testing.T) {
	for _, on := range []bool{false, true} {
		counting := &countingBus{sent: map[string]int{}}
		b := &restlessBus{Bus: counting}
		b.on.Store(on)
		const messages = 256
		for i := range messages {
			data := []byte{byte(i)}
			if err := b.Publish("subject", "", data); err != nil {
				t.Fatal(err)
			}
			data[0] = 0 // the bus must not keep it
		}
		if err := b.settle(); err != nil {
			t.Fatal(err)
		}
		twice := 0
		for _, n := range counting.sent {
			if n > 1 {
				twice++
			}
		}
		if len(counting.sent) != messages || (twice > 0) != on || (b.restless.Load() > 0) != on {
			t.Errorf("on %t: %d of %d messages arrived, %d twice, %d disturbed", on, len(counting.sent), messages, twice, b.restless.Load())
		}
	}
}
