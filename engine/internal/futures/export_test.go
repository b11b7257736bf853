package futures

import (
	"taskledger/engine/internal/outcome"
	"taskledger/task"
)

const (
	SweepEvery = sweepEvery
	MaxRecent  = maxRecent
)

func (r *Registry) Deliver(shard int, outcomes []outcome.Outcome) { r.deliver(shard, outcomes) }

func (r *Registry) Ask(f *Future) { r.ask(f) }

func (r *Registry) Remembered(shard int) int { return len(r.shards[shard].recent) }

func (f *Future) HasWaiters() bool { return f.value.waits() }

// Hold keeps futures of a shard from being added until the function that it returns is called.
func (r *Registry) Hold(shard int) (release func()) {
	r.shards[shard].mu.Lock()
	return r.shards[shard].mu.Unlock
}

func (f *Future) IsWatched() bool { return f.watched.Load() }

func (f *Future) End() { f.resolve(nil, task.ErrClosed) }
