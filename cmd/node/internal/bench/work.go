package bench

import (
	"context"
	"runtime"
	"time"
)

// work counts the tasks of a loop's windows, their time, and the CPU time of the process and its servers.
type work struct {
	tasks     int
	took, cpu time.Duration
}

// window makes a window of a closed loop, each turn of which makes so many tasks, adds it to the work, and returns it
// alone.
func (w *work) window(ctx context.Context, s *servers, callers int, length time.Duration, size int, op func(context.Context, int) error) (work, error) {
	runtime.GC() // no window pays for the garbage of the one before
	cpu, err := s.cpu()
	if err != nil {
		return work{}, err
	}
	made, err := closedLoop(ctx, callers, length, op)
	if err != nil {
		return work{}, err
	}
	used, err := s.cpu()
	of := work{tasks: size * made.count, took: made.took, cpu: used - cpu}
	w.add(of)
	return of, err
}

func (w *work) add(of work) {
	w.tasks, w.took, w.cpu = w.tasks+of.tasks, w.took+of.took, w.cpu+of.cpu
}

func (w work) perSecond() float64 { return float64(w.tasks) / w.took.Seconds() }

// cpuPerTask is in microseconds.
func (w work) cpuPerTask() float64 {
	return float64(w.cpu.Microseconds()) / float64(max(w.tasks, 1))
}
