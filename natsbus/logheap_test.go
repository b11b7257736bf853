package natsbus_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/natsbus"
	"taskledger/tasklog"
	"taskledger/tasklog/tasklogtest"
)

// Each run that writes has a subject of its own, and a server has all subjects of a stream in memory, beside buffers
// that do not grow with them. No other test runs meanwhile, so that the heap is that of this one.
func TestLogs_OfAMillionRunsTake300MiBOfTheServersHeap(t *testing.T) {
	const buffers, most = 16 << 20, 300 << 20
	runs := testkit.Times(60_000, natsbus.MaxLogMessages)
	s := testcluster.StartJetStream(t)
	s.Stop()
	s.Lazy = true
	s.Start()
	l := logsAt(t, s)
	appendLog(t, l, logged, tasklog.End{}, tasklogtest.Lines(1, 1))
	before := heap()
	var next atomic.Int64
	var writing sync.WaitGroup
	for range 64 {
		writing.Go(func() {
			for i := next.Add(1); i < int64(runs); i = next.Add(1) {
				of := tasklog.Attempt{Shard: uint16(i % 16), Life: events.RefOf(uint64(1000+i), 1), Number: 1}
				if _, err := l.Append(t.Context(), of, tasklog.End{}, tasklogtest.Lines(1, 1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	took := heap() - before
	stream, err := byHand(t, s.URL).Stream(t.Context(), logStream)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != uint64(runs) {
		t.Errorf("%d runs are stored, want %d", n, runs)
	}
	t.Logf("%d runs take %d bytes", runs, took)
	if bound := int64(buffers + (most-buffers)/natsbus.MaxLogMessages*runs); took > bound {
		t.Errorf("%d runs take %d bytes of heap, want %d at most", runs, took, bound)
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
