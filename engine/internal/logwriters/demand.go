package logwriters

import (
	"time"

	"golang.org/x/time/rate"
)

// functionBatches bounds the batches a second of attempts in which no program writes. With more of them the node would
// make fewer attempts: a batch of one line takes some 200 microseconds of a processor where NATS is in the process and
// syncs each, half of them in the sync, and a short task takes 40; a line that is dropped takes one. The stream of logs
// of natsbus has room for a quarter of an hour of so many. Half as many pass while far more logs begin.
const functionBatches = 1000

// crowd is the number of logs that begin for each that functionBatches let write, from which on most lines are dropped
// anyway.
const crowd = 4

// demand counts the logs that begin, with room for them and without, and halves the pace of functions while there is a
// crowd: the attempts keep the processors that the other half would take.
type demand struct {
	pace  *rate.Limiter
	since time.Time
	logs  int
}

// begins counts a log that begins. Its caller holds a lock.
func (d *demand) begins() {
	d.logs++
	passed := time.Since(d.since)
	if passed < time.Second {
		return
	}
	limit := rate.Limit(functionBatches)
	if float64(d.logs) > crowd*functionBatches*passed.Seconds() {
		limit /= 2
	}
	d.pace.SetLimit(limit)
	d.since, d.logs = time.Now(), 0
}
