package progress

import "taskledger/events"

// MaxPage bounds the buckets of a FailurePage.
const MaxPage = 100

// FailurePage has buckets with failed items, the one that ended last first.
type FailurePage struct {
	Task events.TaskID `json:"task"`
	Run  int64         `json:"run"`
	// FailedItems counts all of the run, and FailedBuckets the buckets that had some; pages may tell fewer texts.
	FailedItems   uint64     `json:"failed_items"`
	FailedBuckets uint64     `json:"failed_buckets"`
	Buckets       []Failures `json:"buckets"`
	Cursor        string     `json:"cursor,omitempty"` // asks for the next page; "" = there is none
}

// Failures tells of the failed items of a bucket, or of a stream since it last told of itself: then the bucket is 1,
// each time.
type Failures struct {
	Partition string          `json:"partition"`
	Bucket    uint64          `json:"bucket"`
	Worker    uint32          `json:"worker"`
	EndedAt   events.Millis   `json:"ended_at"`
	Position  events.Position `json:"position"` // of the event that tells it
	Failed    uint64          `json:"failed"`   // items
	// Errors are the first of them: up to 20, of 8 KiB together. A run that has told 64 MiB tells no others.
	Errors []ItemError `json:"errors,omitempty"`
}

// ItemError tells why an item failed.
type ItemError struct {
	Item    string `json:"item"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Walk finds the failures of the last run of a work among the events of its task, which it is given newest first.
type Walk struct {
	// Version is the last event that counts: what came after it is passed over.
	Version events.Ref
	// Partitions are the ids of the partitions, and Current the number of the one that was under way after the events
	// that are taken next, or that was the last to end.
	Partitions []string
	Current    int
	// Over tells that the run has no earlier events.
	Over bool
}

// Take takes an event, and returns what it tells; false = nothing.
func (w *Walk) Take(ev *events.Event) (f Failures, is bool) {
	if w.Over || ev.Position.Ref > w.Version {
		return f, false
	}
	switch b := ev.Body.(type) {
	case *events.WorkPlanned, *events.Created:
		w.Over = true
	case *events.WorkReset:
		w.Over = b.What == events.ResetAll
	case *events.PartitionEnded:
		w.Current = int(b.Partition)
	case *events.BucketsMoved:
		if b.Ended != 0 && b.Items.Failed > 0 {
			return w.failures(ev, b.Ended, b.Worker, &b.Items, b.Errors), true
		}
	case *events.TokenMoved:
		if b.Items.Failed > 0 {
			return w.failures(ev, 1, 1, &b.Items, b.Errors), true
		}
	}
	return f, false
}

func (w *Walk) failures(
	ev *events.Event, bucket uint64, worker uint32, items *events.ItemCounts, errs []events.ItemError,
) Failures {
	f := Failures{
		Bucket:   bucket,
		Worker:   worker,
		EndedAt:  ev.At,
		Position: ev.Position,
		Failed:   items.Failed,
	}
	if at := w.Current - 1; at >= 0 && at < len(w.Partitions) {
		f.Partition = w.Partitions[at]
	}
	for _, e := range errs {
		f.Errors = append(f.Errors, ItemError(e))
	}
	return f
}
