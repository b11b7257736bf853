package projection_test

import (
	"testing"

	"taskledger/events"
	"taskledger/projection/works"
)

// A run has as many ranges of failed buckets as it may before its second partition has one, too.
func TestWorks_FailedBucketsOfManyPartitionsAreRestored(t *testing.T) {
	j := newJournal(t)
	const id = "a/p"
	j.add(id, j.created())
	j.add(id, j.started(id))
	const buckets = 2*works.MaxFailedRanges + 2
	j.add(id, &events.WorkPlanned{Run: 1, Definition: "d", Partitions: []events.WorkPartition{
		{ID: "one", Buckets: buckets, Workers: 1, Threads: 1},
		{ID: "two", Buckets: 3, Workers: 1, Threads: 1},
	}})
	attempt := j.state.Task(id).Started
	j.add(id, &events.PartitionStarted{Partition: 1})
	run := func(buckets uint64, failed func(n uint64) bool) {
		j.add(id, &events.BucketsMoved{Worker: 1, Attempt: attempt, Started: 1})
		for n := uint64(1); n <= buckets; n++ {
			m := &events.BucketsMoved{Worker: 1, Attempt: attempt, Ended: n}
			if n < buckets {
				m.Started = n + 1
			}
			if failed(n) {
				m.Items.Failed = 1
			}
			j.add(id, m)
			if n%4000 == 0 {
				j.seal(0)
				j.entries = nil
			}
		}
	}
	run(buckets, func(n uint64) bool { return n%2 == 0 && n <= 2*works.MaxFailedRanges })
	j.add(id, &events.PartitionEnded{Partition: 1})
	j.add(id, &events.PartitionStarted{Partition: 2})
	run(3, func(n uint64) bool { return n == 2 })
	j.seal(0)
	restored := restore(t, write(j.state))
	if restored.Digest(nil) != j.state.Digest(nil) {
		t.Error("restored, the shard differs")
	}
}
