package view

import "taskledger/events"

// The words for the modes of partitions, for why buckets are returned, for what a reset forgets, and for the forms of
// streams.
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
		events.ResetToken:      "token",
		events.ResetCounts:     "thresholds",
	}
	workForms = []string{
		events.FormBuckets:   "",
		events.FormPrecise:   "precise",
		events.FormImprecise: "imprecise",
		events.FormPushed:    "pushed",
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
		o := object{"what": resetScopes[b.What]}
		if b.What == events.ResetToken {
			o["token"] = b.Token
		}
		return withSome(o, map[string]string{"reason": b.Reason})
	case *events.TokenMoved:
		return movedToken(b)
	case *events.ChangeHeld:
		o := object{
			"hold":      b.Hold,
			"partition": b.Partition,
			"key":       b.Key,
			"bytes":     len(b.Data),
		}
		if b.Passed {
			o["passed"] = true
		}
		return withSome(o, map[string]string{"at": b.At, "code": b.Code, "message": b.Message})
	case *events.HoldMoved:
		return object{
			"hold":  b.Hold,
			"done":  b.Done,
			"ended": b.Ended,
		}
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
		partition := object{
			"id":         p.ID,
			"mode":       workModes[p.Mode],
			"buckets":    p.Buckets,
			"workers":    p.Workers,
			"threads":    p.Threads,
			"thresholds": thresholds,
		}
		if p.MovesToken {
			partition["moves_token"] = true
		}
		partitions = append(partitions, withSome(partition, map[string]string{"stream": workForms[p.Form]}))
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
	withErrors(o, b.Errors)
	return withSome(o, map[string]string{"cause": returnCauses[b.Cause]})
}

func movedToken(b *events.TokenMoved) object {
	o := object{
		"done":    b.Items.Done,
		"failed":  b.Items.Failed,
		"skipped": b.Items.Skipped,
		"open":    b.Open,
	}
	if b.Simulated {
		o["simulated"] = true
	}
	if b.Oldest != 0 {
		o["oldest"] = b.Oldest
	}
	withErrors(o, b.Errors)
	return withSome(o, map[string]string{"token": b.Token})
}

// withErrors adds the errors of items, if there are any.
func withErrors(o object, all []events.ItemError) {
	if len(all) == 0 {
		return
	}
	errs := make([]object, 0, len(all))
	for _, e := range all {
		errs = append(errs, object{"item": e.Item, "code": e.Code, "message": e.Message})
	}
	o["errors"] = errs
}
