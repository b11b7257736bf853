package bench_test

import (
	"testing"
	"time"

	"taskledger/internal/measure"
)

// BenchmarkThroughput measures as the command bench does, which bounds it in a proof; with etcd over gRPC, too.
func BenchmarkThroughput(b *testing.B) {
	measured := func(start func(testing.TB, int) *measure.Servers) func(b *testing.B) {
		return func(b *testing.B) {
			run(b, func(tb testing.TB) figures {
				return throughput(tb, start(tb, 0), loadInFlight, lasts(4*time.Second, 12*time.Second))
			})
		}
	}
	b.Run("client=inproc", measured(servers))
	b.Run("client=grpc", measured(serversApart))
}

func throughput(tb testing.TB, s *measure.Servers, inFlight int, total time.Duration) figures {
	r := must(measure.MeasureTasks(tb.Context(), s, inFlight, total))(tb)
	f := newFigures(tb)
	f.is("tasks/s", r.TasksPerS)
	f.is("puts/s", r.BaselinePutsPerS)
	f.is("ratio", r.Ratio)
	f.is("p50-ms", r.P50Ms)
	f.is("p99-ms", r.P99Ms)
	f.is("put-p50-ms", r.BaselineP50Ms)
	f.is("cpu-us/task", r.CPUUsPerTask)
	f.is("etcd-requests/task", r.EtcdRequestsPerTask)
	return f
}

func TestThroughput_TellsEveryFigureOverGRPC(t *testing.T) {
	t.Parallel()
	f := throughput(t, serversApart(t, 0), 8, time.Millisecond)
	if len(f.by) != 8 {
		t.Errorf("%d figures, want 8", len(f.by))
	}
	f.wantPositive()
}

// wantPositive fails the test for figures that are not above 0: those named, or all.
func (f figures) wantPositive(units ...string) {
	f.Helper()
	if units == nil {
		for unit := range f.by {
			units = append(units, unit)
		}
	}
	for _, unit := range units {
		if !(f.by[unit] > 0) {
			f.Errorf("%s is %v", unit, f.by[unit])
		}
	}
}
