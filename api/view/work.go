package view

import "taskledger/events"

// The words for the modes of partitions, for why buckets are returned, and for what a reset forgets.
var (
	workModes = []string{
		events.ModeFull:     "full",
		events.ModeSimulate: "simulate",
		events.ModeDryRun:   "dry-run",
	}
	returnCauses = []string{
		events.NotReturned:      "",
		events.ReturnedGivenUp:  "the attempt ended before it",
		events.ReturnedFailed:   "the attempt failed",
		events.ReturnedByWorker: "the worker gave it back",
		events.ReturnedLost:     "the attempt was lost",
	}
	resetScopes = []string{
		events.ResetAll:        "all",
		events.ResetThresholds: "thresholds",
	}
)

// ofWork returns the content of an event of a work, nil for any other.
func ofWork(of events.Body) any {
	switch b := of.(type) {
	case *events.WorkPlanned:
		return plannedWork(b)
	case *events.PartitionStarted:
		o := object{"partition": b.Partition}
		if b.Counted {
			o["expected"] = b.Expected
		}
		return o
	case *events.PartitionEnded:
		return object{"partition": b.Partition}
	case *events.BucketsMoved:
		return movedBuckets(b)
	case *events.PermitsGranted:
		return object{
			"counter":  b.Counter,
			"bucket":   b.Bucket,
			"simulate": b.Simulate,
			"items":    len(b.Items),
		}
	case *events.WorkReset:
		return object{"what": resetScopes[b.What]}
	}
	return nil
}

func plannedWork(b *events.WorkPlanned) object {
	o := object{"run": b.Run}
	if b.Failed {
		o["failed_buckets"] = true
		return o
	}
	partitions := make([]object, 0, len(b.Partitions))
	for _, p := range b.Partitions {
		thresholds := object{}
		for _, t := range p.Thresholds {
			thresholds[t.Counter] = t.Limit
		}
		partitions = append(partitions, object{
			"id":         p.ID,
			"mode":       workModes[p.Mode],
			"buckets":    p.Buckets,
			"workers":    p.Workers,
			"threads":    p.Threads,
			"thresholds": thresholds,
		})
	}
	o["partitions"] = partitions
	return withSome(o, map[string]string{"definition": b.Definition})
}

func movedBuckets(b *events.BucketsMoved) object {
	o := object{}
	if b.Worker == 0 {
		o["returned"] = "all"
	} else {
		o["worker"] = b.Worker
	}
	for name, bucket := range map[string]uint64{"ended": b.Ended, "returned": b.Returned, "started": b.Started} {
		if bucket != 0 {
			o[name] = bucket
		}
	}
	if b.Ended != 0 {
		o["done"], o["failed"], o["skipped"] = b.Items.Done, b.Items.Failed, b.Items.Skipped
	}
	if len(b.Errors) > 0 {
		errs := make([]object, 0, len(b.Errors))
		for _, e := range b.Errors {
			errs = append(errs, object{"item": e.Item, "code": e.Code, "message": e.Message})
		}
		o["errors"] = errs
	}
	return withSome(o, map[string]string{"cause": returnCauses[b.Cause]})
}
