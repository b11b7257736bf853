package events_test

import (
	"testing"
	"time"

	"taskledger/events"
)

// samplePolicy sets every field to a value of its own.
var samplePolicy = events.Policy{
	Timeout: time.Minute, MaxAttempts: 7, MaxLost: 3, LostDelay: 1500 * time.Millisecond,
	Backoff:  events.Backoff{Base: 2 * time.Second, Max: 10 * time.Minute},
	Existing: events.RunAgain, Priority: 42, Retain: 48 * time.Hour, RetainCount: 500, Every: 90 * time.Minute,
}

// samplePlan sets every field to a value of its own.
var samplePlan = events.SchedulePlan{
	Cron: "0 30 3 ? * MON-FRI", Zone: "Europe/Berlin", Behavior: "purge-table", Policy: samplePolicy, Priority: 100,
	Overlap: events.OverlapReplace, Misfire: events.MisfireAll, Grace: 3_600_000, Jitter: 60_000,
	Start: sampleTime, End: sampleTime.Add(365 * 24 * time.Hour), Keep: 30, PauseOnFailure: true,
}

// unticked is a plan without ticks.
var unticked = events.SchedulePlan{
	Zone: "Europe/Berlin", Behavior: "purge-table", Policy: samplePolicy, Priority: 100, Overlap: events.OverlapReplace, Grace: 3_600_000, Keep: 30,
}

// uuids is a plan whose runs are named by UUIDs.
var uuids = func() events.SchedulePlan {
	p := samplePlan
	p.Names = events.NamesByUUID
	return p
}()

const sampleTime events.Millis = 1_700_000_000_123

// samples holds one event of every kind, in stored order. The golden files pin them: values here never change.
func samples() []events.Event {
	bodies := []events.Body{
		&events.Created{Behavior: "purge-table", Policy: samplePolicy, Priority: 100, NotBefore: sampleTime.Add(time.Hour),
			Params: events.JSON([]byte(`{"table":"orders"}`))},
		&events.Started{Node: "n-1f2e3d4c", Attempt: 2, Offer: 77, Lease: 10_000},
		&events.Progressed{Done: 250, Total: -1, Note: "listing"},
		&events.Succeeded{Result: events.JSON([]byte(`{"files":3}`)), Next: sampleTime.Add(24 * time.Hour), Run: 4},
		&events.Failed{Error: events.Error{Code: "forbidden", Message: "no access to orders", Retryable: true,
			Properties: map[string]string{"user": "ada", "bucket": "b-1"}}, Next: sampleTime.Add(time.Second), Run: 5},
		&events.Snoozed{Until: sampleTime.Add(5 * time.Minute)},
		&events.Lost{Until: sampleTime.Add(time.Second), Node: "n-1f2e3d4c"},
		&events.Released{Until: sampleTime, Node: "n-1f2e3d4c"},
		&events.Rescheduled{At: sampleTime.Add(time.Minute)},
		&events.Merged{Params: events.JSON([]byte(`{"table":"orders","all":true}`))},
		&events.Suspended{Reason: "a migration"},
		&events.Resumed{},
		&events.CancelRequested{Reason: "by request"},
		&events.Deleted{},
		&events.Joined{Terms: &sampleTerms},
		&events.AcceptedLoss{Entry: 17, Sound: events.Hash{0xab, 0xcd}, Reason: "disk"},
		&events.Recovered{Entry: 40, Sound: events.Hash{0xef}, Reason: "restored from the backup of Monday"},
		&events.Paused{Behavior: "purge-table", Reason: "orders are being moved"},
		&events.Unpaused{Behavior: "purge-table"},
		&events.ItemAdded{ID: 7, Group: "pages/new", At: sampleTime.Add(time.Minute), Owner: 1 << 52, Data: events.Bytes([]byte("a\x00\xff"))},
		&events.ItemReplaced{From: 7, To: 9, At: sampleTime, Owner: 12, Data: events.Bytes(nil)},
		&events.ItemRemoved{ID: 9, Owner: 12},
		&events.StoreForgotten{Store: "crawl", Last: 9},
		&events.ScheduleSet{Plan: samplePlan, Params: events.JSON([]byte(`{"table":"orders"}`)), Next: sampleTime.Add(time.Hour), Offset: -16_200, Code: "5f0c"},
		&events.Ticked{Decision: events.TickCreated, From: sampleTime, To: sampleTime, Run: "nightly/tick:1700000000123", Next: sampleTime.Add(time.Hour),
			ToOffset: 3600, NextOffset: 7200},
		&events.SchedulePaused{Reason: "orders are being moved", Failed: "nightly/tick:1700000000123"},
		&events.ScheduleResumed{},
		&events.BackfillSet{From: sampleTime, To: sampleTime.Add(24 * time.Hour), Ticks: 25},
		&events.BackfillEnded{Reason: "enough"},
		&events.ScheduleEnded{},
		&events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: unticked, Params: events.JSON([]byte(`{"table":"orders"}`)), Code: "5f0c"}},
		&events.WorkPlanned{Run: 2, Definition: "5f0c", Partitions: []events.WorkPartition{
			{ID: "try", Mode: events.ModeSimulate, Buckets: 1, Workers: 1, Threads: 1},
			{ID: "all", Buckets: 200, Workers: 9, Threads: 4, Segments: []byte("0-9a-f"), Thresholds: []events.WorkThreshold{{Counter: "deleted", Limit: 10}}},
		}},
		&events.PartitionStarted{Partition: 2, Counted: true, Expected: 20_000},
		&events.PartitionEnded{Partition: 2},
		&events.BucketsMoved{Worker: 3, Attempt: events.RefOf(40, 1), Ended: 17, Items: events.ItemCounts{Done: 97, Failed: 2, Skipped: 1},
			Errors: []events.ItemError{{Item: "o-17", Code: "forbidden", Message: "no access"}}, Started: 18},
		&events.PermitsGranted{Counter: "deleted", Bucket: 18, Simulate: true, Items: []uint64{1 << 63, 7}},
		&events.WorkReset{What: events.ResetThresholds},
		&events.TokenMoved{Attempt: events.RefOf(40, 1), Token: "usn:17\xff", Items: events.ItemCounts{Done: 97, Failed: 2, Skipped: 1},
			Errors: []events.ItemError{{Item: "o-17", Code: "forbidden", Message: "no access"}}, Open: 9, Oldest: sampleTime},
		&events.ChangeHeld{Attempt: events.RefOf(40, 1), Hold: 3, Partition: 1, Key: "o-17", At: "usn:16", Data: []byte(`{"o":17}`), Code: "forbidden",
			Message: "no access", Passed: true},
		&events.HoldMoved{Hold: 3, Done: 2, Ended: true},
		&events.Described{Tags: []string{"customer=ada", "nightly"}, Deadline: sampleTime.Add(time.Hour)},
	}
	all := make([]events.Event, len(bodies))
	for i, body := range bodies {
		all[i] = events.Event{Task: "orders/purge", Seq: uint64(i + 1), Origin: i % 3, Body: body}
		switch body.Kind().Record() {
		case events.OfTask:
		case events.OfItem:
			all[i].Task = events.StoreItem("crawl", 7)
		case events.OfSchedule:
			all[i].Task = events.ScheduleRecord("nightly")
		default:
			all[i].Task = ""
		}
		if i > 0 {
			all[i].Prev = events.RefOf(41, i-1)
		}
	}
	all[0].RequestID = "req-1"
	return all
}

// sampleHead is the entry that the samples stand in.
func sampleHead() events.Entry {
	return events.Entry{Shard: 11, Number: 42, Epoch: 123_456, Owner: "n-0a1b2c3d", Time: sampleTime,
		Prev: events.Hash{0xde, 0xad, 0xbe, 0xef}}
}

var sampleOrigins = []events.Origin{
	{Sender: "c-9f8e", Lane: 1, Number: 5, Caller: events.Caller{Principal: "ada"}, Answers: []byte{1, 2, 3}},
	{Sender: "n-0a1b2c3d", Lane: 0, Number: 900, Caller: events.Caller{Principal: "grace"}},
}

// sampleCallers are sampleOrigins with a caller behind the first.
var sampleCallers = []events.Origin{sampleOrigins[0],
	{Batch: 1, Caller: events.Caller{Principal: "linus", RequestID: "r-77", Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}},
	sampleOrigins[1]}

var sampleTerms = events.Terms{Policy: samplePolicy, Priority: 7}

// tailed holds the kinds whose last value is optional, with it.
func tailed() map[string]events.Event {
	return map[string]events.Event{
		"created-ties": {Task: "orders/purge", Seq: 1, Origin: 2, Body: &events.Created{Behavior: "purge-table", Policy: samplePolicy, NotBefore: sampleTime,
			Ties: events.Ties{Parent: "orders/all", Schedule: "nightly", Group: "orders"}}},
		"created-run": {Task: "nightly/813fd1d0-e9cc-5537-9127-b1b5cb6e3234", Seq: 1, Body: &events.Created{Behavior: "purge-table", Policy: samplePolicy,
			NotBefore: sampleTime, Ties: events.Ties{Schedule: "nightly", Run: events.RunOfTick}}},
		"scheduledefined-names": {Task: events.ScheduleRecord("nightly"), Seq: 1, Origin: 2,
			Body: &events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: uuids, Next: sampleTime}}},
		"scheduledefined-reason": {Task: events.ScheduleRecord("nightly"), Seq: 2, Prev: events.RefOf(41, 0), Origin: 1,
			Body: &events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: samplePlan, Next: sampleTime}, Reason: "moving house"}},
		"rescheduled-terms":          {Task: "orders/purge", Seq: 2, Prev: events.RefOf(41, 0), Origin: 3, Body: &events.Rescheduled{At: sampleTime, Terms: &sampleTerms}},
		"rescheduled-never":          {Task: "orders/purge", Seq: 5, Prev: events.RefOf(41, 3), Origin: 2, Body: &events.Rescheduled{Reason: "the table is gone"}},
		"merged-terms":               {Task: "orders/purge", Seq: 3, Prev: events.RefOf(41, 1), Origin: 1, Body: &events.Merged{Params: events.JSON([]byte("{}")), Terms: &sampleTerms}},
		"workplanned-failed":         {Task: "orders/purge", Seq: 7, Prev: events.RefOf(41, 6), Origin: 1, Body: &events.WorkPlanned{Run: 3, Failed: true}},
		"partitionstarted-uncounted": {Task: "orders/purge", Seq: 8, Prev: events.RefOf(41, 7), Body: &events.PartitionStarted{Partition: 1}},
		"bucketsmoved-returned": {Task: "orders/purge", Seq: 9, Prev: events.RefOf(41, 8),
			Body: &events.BucketsMoved{Worker: 3, Attempt: events.RefOf(40, 1), Returned: 17, Cause: events.ReturnedFailed}},
		"bucketsmoved-lost": {Task: "orders/purge", Seq: 10, Prev: events.RefOf(41, 9),
			Body: &events.BucketsMoved{Worker: 3, Attempt: events.RefOf(40, 2), Returned: 17, Cause: events.ReturnedLost}},
		"workplanned-stream": {Task: "orders/sync", Seq: 11, Prev: events.RefOf(41, 10), Body: &events.WorkPlanned{Run: 3, Definition: "5f0c",
			Partitions: []events.WorkPartition{{ID: "try", Mode: events.ModeSimulate, Buckets: 1, Workers: 1, Threads: 4, Form: events.FormPrecise, MovesToken: true}}}},
		"workplanned-rules": {Task: "orders/purge", Seq: 7, Prev: events.RefOf(41, 6), Body: &events.WorkPlanned{Run: 3, Definition: "5f0c",
			Partitions: []events.WorkPartition{{ID: "all", Buckets: 200, Workers: 9, Threads: 4, Rules: []byte("busy: ignore")}}}},
		"workreset-token": {Task: "orders/sync", Seq: 12, Prev: events.RefOf(41, 11), Body: &events.WorkReset{What: events.ResetToken,
			Token: "usn:17\xff", Reason: "restored"}},
		"workreset-counts": {Task: "orders/purge", Seq: 12, Prev: events.RefOf(41, 11), Body: &events.WorkReset{What: events.ResetCounts}},
		"tokenmoved-simulated": {Task: "orders/sync", Seq: 13, Prev: events.RefOf(41, 12), Body: &events.TokenMoved{Attempt: events.RefOf(40, 1),
			Token: "usn:17", Simulated: true}},
		"changeheld-append": {Task: "orders/sync", Seq: 14, Prev: events.RefOf(41, 13), Body: &events.ChangeHeld{Attempt: events.RefOf(40, 1), Hold: 3,
			Partition: 1, Key: "o-17", Data: []byte("1")}},
		"joined-plain": {Task: "orders/purge", Seq: 4, Prev: events.RefOf(41, 2), RequestID: "req-2", Body: &events.Joined{}},
	}
}

// seal builds an entry and returns it with its stored form.
func seal(t testing.TB, head events.Entry, origins []events.Origin, evs ...events.Event) (events.Entry, []byte) {
	t.Helper()
	var b events.Builder
	b.Reset(head)
	for _, o := range origins {
		b.AddOrigin(o)
	}
	for _, ev := range evs {
		b.Add(ev)
	}
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > b.Size() {
		t.Fatalf("%d bytes sealed, Size said at most %d", len(data), b.Size())
	}
	return b.Entry, data
}
