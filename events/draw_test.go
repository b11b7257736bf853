package events_test

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"taskledger/events"
)

// drawEntry fills b with any entry within the limits.
func drawEntry(t *rapid.T, b *events.Builder) {
	text := rapid.StringN(0, 40, 100)
	head := events.Entry{Shard: rapid.Uint16().Draw(t, "shard"), Number: rapid.Uint64Range(0, 1<<44-1).Draw(t, "number"),
		Epoch: rapid.Int64().Draw(t, "epoch"), Owner: text.Draw(t, "owner"), Time: events.Millis(rapid.Int64().Draw(t, "time"))}
	copy(head.Prev[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "prev"))
	b.Reset(head)
	origins := rapid.IntRange(0, 5).Draw(t, "origins")
	batch := 0
	for range origins {
		if batch > 0 && rapid.Bool().Draw(t, "caller") {
			b.AddOrigin(events.Origin{Batch: batch, Caller: events.Caller{Principal: text.Draw(t, "principal"), RequestID: text.Draw(t, "request"),
				Traceparent: text.Draw(t, "traceparent")}})
			continue
		}
		batch = b.AddOrigin(events.Origin{Sender: text.Draw(t, "sender"), Lane: rapid.Byte().Draw(t, "lane"),
			Number: rapid.Uint64().Draw(t, "batch"), Caller: events.Caller{Principal: text.Draw(t, "principal")}, Answers: drawBytes(t)})
	}
	for range rapid.IntRange(1, 30).Draw(t, "events") {
		ev := events.Event{Seq: rapid.Uint64().Draw(t, "seq"), Prev: events.Ref(rapid.Uint64().Draw(t, "prev")),
			Origin: rapid.IntRange(0, origins).Draw(t, "origin"), Body: drawBody(t, text)}
		switch ev.Kind().Record() {
		case events.OfTask:
			ev.Task, ev.RequestID = drawTaskID(t), text.Draw(t, "request")
		case events.OfItem:
			ev.Task, ev.RequestID = drawItem(t), text.Draw(t, "request")
		case events.OfSchedule:
			ev.Task = drawSchedule(t)
		}
		b.Add(ev)
	}
}

func drawTaskID(t *rapid.T) events.TaskID {
	valid := func(text string) bool { return events.TaskID(text).Validate() == nil }
	return events.TaskID(rapid.StringMatching(`[A-Za-z0-9._:-]{1,20}(/[A-Za-z0-9._:-]{1,20})?`).Filter(valid).Draw(t, "task"))
}

func drawItem(t *rapid.T) events.TaskID {
	return events.StoreItem(rapid.StringMatching(`[A-Za-z0-9._:-]{1,20}`).Draw(t, "store"), drawNumber(t))
}

func drawSchedule(t *rapid.T) events.TaskID {
	valid := func(name string) bool { return events.ValidateSchedule(name) == nil }
	return events.ScheduleRecord(rapid.StringMatching(`[A-Za-z0-9._:-]{1,20}`).Filter(valid).Draw(t, "schedule"))
}

func drawNumber(t *rapid.T) uint64 {
	return rapid.Uint64Range(1, events.MaxItemNumber).Draw(t, "number")
}

func drawTerms(t *rapid.T) *events.Terms {
	if rapid.Bool().Draw(t, "no terms") {
		return nil
	}
	return &events.Terms{Policy: drawPolicy(t), Priority: rapid.Int64().Draw(t, "priority")}
}

func drawTies(t *rapid.T, text *rapid.Generator[string]) events.Ties {
	if rapid.Bool().Draw(t, "no ties") {
		return events.Ties{}
	}
	ties := events.Ties{Parent: drawTaskID(t), Schedule: text.Draw(t, "schedule"), Group: text.Draw(t, "group"),
		By: text.Draw(t, "by")}
	if ties.Schedule != "" {
		ties.Run = events.RunOrigin(rapid.IntRange(0, 3).Draw(t, "origin of the run"))
	}
	return ties
}

func drawPlan(t *rapid.T) events.SchedulePlan {
	policy, err := drawPolicy(t).Complete()
	if err != nil {
		policy = samplePolicy
	}
	return events.SchedulePlan{
		Cron: rapid.StringN(1, 20, 100).Draw(t, "cron"), Zone: rapid.StringN(1, 10, 60).Draw(t, "zone"), Behavior: "b", Policy: policy,
		Priority: rapid.Int64Range(0, events.MaxPriority).Draw(t, "priority"), Overlap: events.Overlap(rapid.IntRange(0, 2).Draw(t, "overlap")),
		Misfire: events.Misfire(rapid.IntRange(0, 2).Draw(t, "misfire")), Grace: drawSpan(t), Jitter: drawSpan(t), Start: drawItemTime(t), End: drawItemTime(t),
		Keep: rapid.Uint32Range(0, events.MaxKeptRuns).Draw(t, "keep"), PauseOnFailure: rapid.Bool().Draw(t, "pause"),
	}
}

// drawLaterPlan is one that came with ScheduleDefined.
func drawLaterPlan(t *rapid.T) events.SchedulePlan {
	p := drawPlan(t)
	p.Names = events.RunNames(rapid.IntRange(0, 1).Draw(t, "names"))
	if p.Names == 0 || rapid.Bool().Draw(t, "no cron") {
		p.Cron, p.Misfire, p.Jitter, p.Start, p.End, p.PauseOnFailure = "", 0, 0, 0, 0, false
	}
	return p
}

func drawSpan(t *rapid.T) events.Millis {
	return events.Millis(rapid.Int64Range(0, events.MaxDelay.Milliseconds()).Draw(t, "span"))
}

func drawOffset(t *rapid.T) int64 { return rapid.Int64Range(-48*3600, 48*3600).Draw(t, "offset") }

func drawTicked(t *rapid.T) *events.Ticked {
	b := &events.Ticked{Decision: events.TickDecision(rapid.IntRange(1, 6).Draw(t, "decision")), Cause: events.TickCause(rapid.IntRange(0, 6).Draw(t, "cause")),
		From: drawItemTime(t), Next: drawItemTime(t), ToOffset: drawOffset(t), NextOffset: drawOffset(t)}
	if b.To = b.From; b.Decision == events.TickCreated || b.Decision == events.TickFilled {
		b.Run = drawTaskID(t)
	} else {
		b.To = max(b.To, drawItemTime(t))
	}
	return b
}

func drawHash(t *rapid.T) events.Hash {
	return events.Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
}

func drawBytes(t *rapid.T) []byte {
	if rapid.Bool().Draw(t, "none") {
		return nil
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "bytes")
}

func drawBody(t *rapid.T, text *rapid.Generator[string]) events.Body {
	millis := func() events.Millis { return events.Millis(rapid.Int64().Draw(t, "millis")) }
	switch kind := rapid.SampledFrom(events.Kinds()).Draw(t, "kind"); kind {
	case events.KindCreated:
		return &events.Created{Behavior: text.Draw(t, "behavior"), Policy: drawPolicy(t), Priority: rapid.Int64().Draw(t, "priority"),
			NotBefore: millis(), Params: drawBytes(t), Ties: drawTies(t, text)}
	case events.KindStarted:
		return &events.Started{Node: text.Draw(t, "node"), Attempt: rapid.Uint32().Draw(t, "attempt"),
			Offer: rapid.Uint64().Draw(t, "offer"), Lease: millis()}
	case events.KindProgressed:
		return &events.Progressed{Done: rapid.Int64().Draw(t, "done"), Total: rapid.Int64().Draw(t, "total"),
			Note: text.Draw(t, "note")}
	case events.KindSucceeded:
		return &events.Succeeded{Result: drawBytes(t), Next: millis(), Run: rapid.Uint32().Draw(t, "run")}
	case events.KindFailed:
		properties := rapid.MapOfN(text, text, 0, 5).Draw(t, "properties")
		if len(properties) == 0 {
			properties = nil
		}
		return &events.Failed{Next: millis(), Run: rapid.Uint32().Draw(t, "run"), Error: events.Error{Code: text.Draw(t, "code"),
			Message: text.Draw(t, "message"), Retryable: rapid.Bool().Draw(t, "retryable"), Properties: properties}}
	case events.KindSnoozed:
		return &events.Snoozed{Until: millis()}
	case events.KindLost:
		return &events.Lost{Until: millis(), Node: text.Draw(t, "node")}
	case events.KindReleased:
		return &events.Released{Until: millis(), Node: text.Draw(t, "node")}
	case events.KindRescheduled:
		return &events.Rescheduled{At: millis(), Terms: drawTerms(t), Reason: text.Draw(t, "reason")}
	case events.KindMerged:
		return &events.Merged{Params: drawBytes(t), Terms: drawTerms(t)}
	case events.KindSuspended:
		return &events.Suspended{Reason: text.Draw(t, "reason")}
	case events.KindResumed:
		return &events.Resumed{}
	case events.KindCancelRequested:
		return &events.CancelRequested{Reason: text.Draw(t, "reason")}
	case events.KindDeleted:
		return &events.Deleted{}
	case events.KindJoined:
		return &events.Joined{Terms: drawTerms(t)}
	case events.KindAcceptedLoss:
		return &events.AcceptedLoss{Entry: rapid.Uint64Range(0, 1<<44-1).Draw(t, "entry"), Sound: drawHash(t), Reason: text.Draw(t, "reason")}
	case events.KindRecovered:
		return &events.Recovered{Entry: rapid.Uint64Range(0, 1<<44-1).Draw(t, "entry"), Sound: drawHash(t), Reason: text.Draw(t, "reason")}
	case events.KindPaused:
		return &events.Paused{Behavior: text.Draw(t, "behavior"), Reason: text.Draw(t, "reason")}
	case events.KindUnpaused:
		return &events.Unpaused{Behavior: text.Draw(t, "behavior")}
	case events.KindItemAdded:
		return &events.ItemAdded{ID: drawNumber(t), Group: rapid.StringN(1, 40, 100).Draw(t, "group"), At: drawItemTime(t), Owner: drawNumber(t),
			Data: events.Bytes(drawBytes(t))}
	case events.KindItemReplaced:
		replaced := &events.ItemReplaced{From: drawNumber(t), To: drawNumber(t), At: drawItemTime(t), Owner: drawNumber(t)}
		if data := drawBytes(t); data != nil {
			replaced.Data = events.Bytes(data)
		}
		return replaced
	case events.KindItemRemoved:
		return &events.ItemRemoved{ID: drawNumber(t), Owner: drawNumber(t)}
	case events.KindStoreForgotten:
		return &events.StoreForgotten{Store: rapid.StringMatching(`[A-Za-z0-9._:-]{1,20}`).Draw(t, "store"), Last: drawNumber(t)}
	case events.KindScheduleSet:
		return &events.ScheduleSet{Plan: drawPlan(t), Params: drawBytes(t), Next: drawItemTime(t), Offset: drawOffset(t),
			Code: rapid.StringN(0, 10, 60).Draw(t, "code")}
	case events.KindScheduleDefined:
		b := &events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: drawLaterPlan(t), Params: drawBytes(t)}, Reason: text.Draw(t, "reason")}
		if b.Reason != "" && rapid.Bool().Draw(t, "earlier plan") {
			b.Plan = drawPlan(t)
		}
		if b.Plan.Cron != "" {
			b.Next, b.Offset = drawItemTime(t), drawOffset(t)
		}
		return b
	case events.KindTicked:
		return drawTicked(t)
	case events.KindSchedulePaused:
		return &events.SchedulePaused{Reason: text.Draw(t, "reason"), Failed: drawTaskID(t)}
	case events.KindScheduleResumed:
		return &events.ScheduleResumed{}
	case events.KindBackfillSet:
		from := drawItemTime(t)
		return &events.BackfillSet{From: from, To: max(from, drawItemTime(t)), Ticks: rapid.Uint32Range(1, events.MaxBackfill).Draw(t, "ticks")}
	case events.KindBackfillEnded:
		return &events.BackfillEnded{Reason: text.Draw(t, "reason")}
	case events.KindScheduleEnded:
		return &events.ScheduleEnded{}
	case events.KindWorkPlanned:
		return drawWork(t)
	case events.KindPartitionStarted:
		b := &events.PartitionStarted{Partition: drawPartition(t), Counted: rapid.Bool().Draw(t, "counted")}
		if b.Counted {
			b.Expected = rapid.Uint64().Draw(t, "expected")
		}
		return b
	case events.KindPartitionEnded:
		return &events.PartitionEnded{Partition: drawPartition(t)}
	case events.KindBucketsMoved:
		return drawMove(t, text)
	case events.KindPermitsGranted:
		return &events.PermitsGranted{Counter: drawCounter(t), Bucket: drawBucket(t), Simulate: rapid.Bool().Draw(t, "simulate"),
			Items: rapid.SliceOfN(rapid.Uint64(), 1, 5).Draw(t, "items")}
	case events.KindWorkReset:
		b := &events.WorkReset{What: events.ResetScope(rapid.IntRange(1, 4).Draw(t, "what"))}
		if b.What == events.ResetToken {
			b.Token, b.Reason = string(drawBytes(t)), text.Draw(t, "reason")
		}
		return b
	case events.KindTokenMoved:
		b := &events.TokenMoved{Attempt: drawAttempt(t), Token: string(drawBytes(t)), Open: rapid.Uint64Range(0, 1<<53).Draw(t, "open"), Oldest: drawItemTime(t)}
		b.Simulated = b.Token != "" && rapid.Bool().Draw(t, "simulated")
		b.Items, b.Errors = drawItems(t, text)
		return b
	case events.KindChangeHeld:
		return &events.ChangeHeld{Attempt: drawAttempt(t), Hold: rapid.Uint32Range(1, math.MaxUint32).Draw(t, "hold"), Partition: drawPartition(t),
			Key: "k" + string(drawBytes(t)), At: string(drawBytes(t)), Data: drawBytes(t), Code: text.Draw(t, "code"), Message: text.Draw(t, "message"),
			Passed: rapid.Bool().Draw(t, "passed")}
	case events.KindHoldMoved:
		b := &events.HoldMoved{Hold: rapid.Uint32Range(1, math.MaxUint32).Draw(t, "hold"), Done: rapid.Uint32Range(0, events.MaxHeldChanges).Draw(t, "done")}
		b.Ended = b.Done == 0 || rapid.Bool().Draw(t, "ended")
		return b
	case events.KindDescribed:
		tags := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9._:/=+@-]{1,64}`), 0, events.MaxTags, rapid.ID).Draw(t, "tags")
		if slices.Sort(tags); len(tags) == 0 {
			tags = nil
		}
		return &events.Described{Tags: tags, Deadline: drawItemTime(t)}
	default:
		t.Fatalf("no generator for %s", kind)
		return nil
	}
}

func drawPartition(t *rapid.T) uint32 {
	return rapid.Uint32Range(1, events.MaxPartitions).Draw(t, "partition")
}

func drawBucket(t *rapid.T) uint64 { return rapid.Uint64Range(1, events.MaxBuckets).Draw(t, "bucket") }

func drawCounter(t *rapid.T) string { return rapid.StringN(1, 10, 60).Draw(t, "counter") }

func drawWork(t *rapid.T) *events.WorkPlanned {
	b := &events.WorkPlanned{Run: rapid.Uint32Range(1, math.MaxUint32).Draw(t, "run")}
	if b.Failed = rapid.Bool().Draw(t, "failed buckets"); b.Failed {
		return b
	}
	b.Definition = rapid.StringN(0, 10, 60).Draw(t, "definition")
	for i := range rapid.IntRange(1, 3).Draw(t, "partitions") {
		p := events.WorkPartition{ID: fmt.Sprint(i, rapid.StringN(0, 10, 60).Draw(t, "id")), Mode: events.WorkMode(rapid.IntRange(0, 2).Draw(t, "mode")),
			Buckets: drawBucket(t), Workers: rapid.Uint32Range(1, events.MaxWorkers).Draw(t, "workers"),
			Threads: rapid.Uint32Range(1, events.MaxThreads).Draw(t, "threads"), Segments: drawBytes(t)}
		if p.Form = events.WorkForm(rapid.IntRange(0, 3).Draw(t, "form")); p.Form != events.FormBuckets {
			p.Buckets, p.Workers = 1, 1
			p.MovesToken = p.Mode != events.ModeFull && rapid.Bool().Draw(t, "moves token")
		} else if rapid.Bool().Draw(t, "rules") {
			p.Rules = append([]byte(nil), drawBytes(t)...) // what is empty is stored as nothing
		}
		if rapid.Bool().Draw(t, "threshold") {
			p.Thresholds = []events.WorkThreshold{{Counter: drawCounter(t), Limit: rapid.Uint64().Draw(t, "limit")}}
		}
		b.Partitions = append(b.Partitions, p)
	}
	return b
}

func drawMove(t *rapid.T, text *rapid.Generator[string]) *events.BucketsMoved {
	b := &events.BucketsMoved{Worker: rapid.Uint32().Draw(t, "worker")}
	if b.Worker == 0 {
		b.Cause = events.ReturnedGivenUp
		return b
	}
	b.Attempt = drawAttempt(t)
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		b.Ended = drawBucket(t)
		b.Items, b.Errors = drawItems(t, text)
	case 1:
		b.Returned, b.Cause = drawBucket(t), events.ReturnCause(rapid.IntRange(1, 4).Draw(t, "cause"))
		return b
	}
	b.Started = drawBucket(t)
	return b
}

func drawAttempt(t *rapid.T) events.Ref {
	return events.Ref(rapid.Uint64Range(1, math.MaxUint64).Draw(t, "attempt"))
}

func drawItems(t *rapid.T, text *rapid.Generator[string]) (n events.ItemCounts, errs []events.ItemError) {
	n = events.ItemCounts{Done: rapid.Uint64Range(0, 1<<53).Draw(t, "done"), Failed: rapid.Uint64Range(0, 1<<53).Draw(t, "failed")}
	if n.Failed > 0 && rapid.Bool().Draw(t, "told") {
		errs = []events.ItemError{{Item: text.Draw(t, "item"), Code: text.Draw(t, "code"), Message: text.Draw(t, "message")}}
	}
	return n, errs
}

func drawItemTime(t *rapid.T) events.Millis {
	return events.Millis(rapid.Int64Range(0, int64(events.MaxItemTime)).Draw(t, "available"))
}
