package trend

import (
	"context"
	"time"

	"taskledger/api/operations"
)

// askWithin bounds the time of a sample: a shard that has not answered by then is left out.
const askWithin = 5 * time.Second

// Sampler asks the owners of a cluster for their figures.
type Sampler struct {
	Observer operations.Observer
	Into     *Trend
	Now      func() time.Time // default: time.Now
}

// Run takes samples, one at once and then one every Every, until ctx ends.
func (s *Sampler) Run(ctx context.Context) error {
	now := s.Now
	if now == nil {
		now = time.Now
	}
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		ask, cancel := context.WithTimeout(ctx, askWithin)
		shards, err := s.Observer.Shards(ask)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			shards = nil
		}
		s.Into.Add(now(), shards)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
