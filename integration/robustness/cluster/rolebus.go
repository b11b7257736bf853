package cluster

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/natsbus"
	"taskledger/store"
)

// maxDelay bounds the delay of a message: its sender has long sent it again by then.
const maxDelay = 2 * time.Second

// restlessBus is a bus that, while it is on, sends one message in five twice, one in five late and one in ten both now
// and late.
type restlessBus struct {
	store.Bus
	stats    func() natsbus.Stats
	on       atomic.Bool
	restless atomic.Int64
	late     sync.WaitGroup
}

// Publish implements store.Bus.
func (b *restlessBus) Publish(subject, reply string, data []byte) error {
	if !b.on.Load() {
		return b.Bus.Publish(subject, reply, data)
	}
	switch p := rand.Float64(); {
	case p < 0.2:
		b.restless.Add(1)
		_ = b.Bus.Publish(subject, reply, data) // the second one tells
	case p < 0.4:
		b.sendLate(subject, reply, data)
		return nil
	case p < 0.5:
		b.sendLate(subject, reply, data)
	}
	return b.Bus.Publish(subject, reply, data)
}

func (b *restlessBus) sendLate(subject, reply string, data []byte) {
	b.restless.Add(1)
	data = slices.Clone(data)
	b.late.Add(1)
	time.AfterFunc(rand.N(maxDelay), func() {
		defer b.late.Done()
		_ = b.Bus.Publish(subject, reply, data) // as a network would lose it
	})
}

// settle waits until every late message is sent.
func (b *restlessBus) settle() error {
	b.late.Wait()
	return nil
}
