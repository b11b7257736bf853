// Package work processes each item of a large set, with many workers, for as long as it takes: it can be suspended and
// resumed, outlives nodes that die, and tells what became of the items.
//
// A work is a task. Define declares its partitions, which follow one another, each over a set of its own:
//
//	var reindex = work.Define[Index, Row]("reindex", nil, work.Partition[Index, Row]{
//		Items:        rows,    // func(context.Context, Index, work.Bucket) iter.Seq2[Row, error]
//		Process:      reindex, // func(context.Context, Row) error
//		Segmentation: segmentation.Plan{Kind: segmentation.OID, Depth: 2},
//		Workers:      8,
//		Threads:      4,
//	})
//
// The zero value of everything else is a choice, too: a partition has one bucket, one worker and one thread unless it
// says more, and each combination works.
//
// # Buckets, workers and threads
//
// Package segmentation cuts the set of a partition into buckets. A bucket is worked on by one worker at a time, and
// is done once all of its items have ended, whatever became of them. If the worker's attempt ends before that, for
// whatever reason, the bucket is given back, what was counted of it is forgotten, and somebody works on all of its
// items again. So an item is processed at least once, and Process must allow a repetition. What a bucket counted is
// kept once the bucket is done.
//
// Workers are tasks on any node, and each has its threads. Within a worker, items with the same key are processed one
// after the other, in the order in which Items yields them. Nothing orders the items of different buckets.
//
// # Outcomes of items
//
// An item is done when Process returns nil, skipped when it returns Skip, and failed when it returns any other error or
// panics. Rules say what an error does, by the code that behaviors.Code gave to it. Without a rule a failed item is
// counted, its error is kept if it is among the first of its bucket, and the work goes on.
//
// # Thresholds
//
// A threshold limits how often something may be done in a run of a partition: Process asks Permit before it does it.
// Think first, then do: a partition with the mode Simulate before one with the mode Full, over the same items and with
// the same thresholds, ends the work before anything is applied if there is too much to do. Do, then think: one
// partition with the mode Full stops at the limit, and what was applied until then stays.
//
// # Streams
//
// DefineStream declares works whose items are changes, which a source has in an order of its own: Changes fetches what
// has changed since a token, or a Source pushes messages. One worker processes them, those of a key one after the
// other. The record of the work has the token of the last change before which none is open, so nothing is passed over
// when an attempt ends, for whatever reason. A stream stops at the first error unless its rules say something else.
// RetryLater and Park hand a change, and the later ones of its key, to a task of its own.
//
// # Running it
//
// An attempt of the task, or of one of its workers, calls Work.Attempt. It asks a Ledger, which holds the record of the
// work, for buckets and permits; the engine implements it.
package work
