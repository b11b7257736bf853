package events_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/wire"
)

func damaged(t *testing.T, data []byte, what string, args ...any) {
	t.Helper()
	if e, err := events.Decode(data); !errors.Is(err, events.ErrDamaged) || e != nil {
		t.Fatalf(what+": Decode = %v, %v; want an error that wraps ErrDamaged", append(args, e, err)...)
	}
}

func TestDecode_DetectsEveryChangedByte(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins[:1], samples()[9])
	for i, was := range data {
		for v := range 256 {
			if data[i] = byte(v); data[i] != was {
				damaged(t, data, "byte %d from %#02x to %#02x", i, was, v)
			}
		}
		data[i] = was
	}
}

func TestDecode_DetectsEveryFlippedBitOfEveryKind(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	for i := range 8 * len(data) {
		data[i/8] ^= 1 << (i % 8)
		damaged(t, data, "bit %d of byte %d", i%8, i/8)
		data[i/8] ^= 1 << (i % 8)
	}
}

func TestDecode_DetectsEveryCutAndAppendedBytes(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	for n := range data {
		damaged(t, data[:n], "cut to %d bytes", n)
	}
	damaged(t, append(bytes.Clone(data), 0), "a byte appended")
	damaged(t, append(bytes.Clone(data), data...), "the entry twice")
	damaged(t, nil, "nothing")
}

// join is the stored form of a taken-apart entry, whatever it holds.
func (r raw) join() []byte {
	var w wire.Writer
	w.Array(5)
	w.Uint(events.EntryVersion)
	w.Bytes(r.head)
	w.Array(2 * len(r.origins))
	for i := range r.origins {
		w.Bytes(r.origins[i])
		w.Bytes(r.answers[i])
	}
	w.Array(2 * len(r.headers))
	for i := range r.headers {
		w.Bytes(r.headers[i])
		w.Bytes(r.payloads[i])
	}
	w.Bytes(r.hash)
	return w.B
}

func TestDecode_DetectsEventsRemovedAddedOrSwapped(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	if got := parse(t, data).join(); !bytes.Equal(got, data) {
		t.Fatal("taking apart and joining changes an entry")
	}
	elsewhere := sampleHead()
	elsewhere.Number++
	other, otherData := seal(t, elsewhere, sampleOrigins, samples()[1])
	for name, change := range map[string]func(r *raw){
		"first event removed": func(r *raw) { r.headers, r.payloads = r.headers[1:], r.payloads[1:] },
		"last event removed": func(r *raw) {
			r.headers, r.payloads = r.headers[:len(r.headers)-1], r.payloads[:len(r.payloads)-1]
		},
		"all events removed": func(r *raw) { r.headers, r.payloads = nil, nil },
		"event repeated": func(r *raw) {
			r.headers, r.payloads = append(r.headers, r.headers[0]), append(r.payloads, r.payloads[0])
		},
		"events swapped": func(r *raw) {
			r.headers[1], r.headers[2] = r.headers[2], r.headers[1]
			r.payloads[1], r.payloads[2] = r.payloads[2], r.payloads[1]
		},
		"payloads swapped":      func(r *raw) { r.payloads[0], r.payloads[9] = r.payloads[9], r.payloads[0] },
		"payload removed":       func(r *raw) { r.payloads[0] = nil },
		"payload emptied":       func(r *raw) { r.payloads[0] = []byte{} },
		"empty payload added":   func(r *raw) { r.payloads[1] = []byte{} },
		"head of another entry": func(r *raw) { r.head = parse(t, otherData).head },
		"first origin removed":  func(r *raw) { r.origins, r.answers = r.origins[1:], r.answers[1:] },
		"all origins removed":   func(r *raw) { r.origins, r.answers = nil, nil },
		"origin repeated": func(r *raw) {
			r.origins, r.answers = append(r.origins, r.origins[0]), append(r.answers, r.answers[0])
		},
		"origins swapped": func(r *raw) {
			r.origins[0], r.origins[1] = r.origins[1], r.origins[0]
			r.answers[0], r.answers[1] = r.answers[1], r.answers[0]
		},
		"answers swapped":         func(r *raw) { r.answers[0], r.answers[1] = r.answers[1], r.answers[0] },
		"answers removed":         func(r *raw) { r.answers[0] = nil },
		"empty answers added":     func(r *raw) { r.answers[1] = []byte{} },
		"hash of another entry":   func(r *raw) { r.hash = other.Hash[:] },
		"hash cut":                func(r *raw) { r.hash = r.hash[:31] },
		"hash missing":            func(r *raw) { r.hash = nil },
		"events of another entry": func(r *raw) { o := parse(t, otherData); r.headers, r.payloads = o.headers, o.payloads },
		"predecessor's hash zeroed": func(r *raw) {
			r.head = bytes.Replace(r.head, []byte{0xde, 0xad, 0xbe, 0xef}, make([]byte, 4), 1)
		},
	} {
		r := parse(t, data)
		change(&r)
		damaged(t, r.join(), "%s", name)
	}
}

// What cannot be read would leave its shard read-only, so it must not be written.
func TestSeal_RefusesWhatDecodeWouldRefuse(t *testing.T) {
	properties := map[string]string{}
	for i := range events.MaxProperties + 1 {
		properties[fmt.Sprint(i)] = ""
	}
	ofNightly := func(body events.Body) events.Event { return events.Event{Task: "nightly/schedule:", Body: body} }
	ofWork := func(body events.Body) events.Event { return events.Event{Task: "a", Body: body} }
	planOf := func(p events.WorkPartition, definition string) *events.WorkPlanned {
		return &events.WorkPlanned{Run: 1, Definition: definition, Partitions: []events.WorkPartition{p}}
	}
	jittered, renamed := unticked, uuids
	jittered.Jitter, renamed.Names = 1, 2
	bad := events.Terms{Policy: events.Policy{MaxAttempts: -1}}
	for name, c := range map[string]struct {
		want string
		ev   events.Event
	}{
		"empty task id":         {"task id: empty", events.Event{Body: &events.Deleted{}}},
		"task id out of rules":  {"byte 1 is ' '", events.Event{Task: "a b", Body: &events.Deleted{}}},
		"payload too large":     {"payload of 262145 bytes", events.Event{Task: "a", Body: &events.Merged{Params: make(events.Payload, events.MaxPayloadBytes+2)}}},
		"too many properties":   {"properties exceed the limit", events.Event{Task: "a", Body: &events.Failed{Error: events.Error{Properties: properties}}}},
		"policy out of range":   {"policy: timeout", events.Event{Task: "a", Body: &events.Created{Policy: events.Policy{Timeout: -1e6}}}},
		"schedule of ties":      {"schedule: 257 bytes", events.Event{Task: "a", Body: &events.Created{Ties: events.Ties{Schedule: strings.Repeat("s", events.MaxNameBytes+1)}}}},
		"origin of a run":       {"run of origin 4 and schedule \"s\"", events.Event{Task: "a", Body: &events.Created{Ties: events.Ties{Schedule: "s", Run: 4}}}},
		"run of no schedule":    {"run of origin 1 and schedule \"\"", events.Event{Task: "a", Body: &events.Created{Ties: events.Ties{Run: events.RunOfTick}}}},
		"set without ticks":     {"want ScheduleDefined", ofNightly(&events.ScheduleSet{Plan: unticked})},
		"set with UUIDs":        {"want ScheduleDefined", ofNightly(&events.ScheduleSet{Plan: uuids})},
		"defined as before":     {"want ScheduleSet", ofNightly(&events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: samplePlan}})},
		"reason of a plan":      {"reason: 257 bytes", ofNightly(&events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: samplePlan}, Reason: strings.Repeat("r", events.MaxNameBytes+1)})},
		"tick without cron":     {"next tick 5 without cron", ofNightly(&events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: unticked, Next: 5}})},
		"jitter without cron":   {"jitter: it means nothing without cron", ofNightly(&events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: jittered}})},
		"names of no rule":      {"names: 2, want less than 2", ofNightly(&events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: renamed}})},
		"group of ties":         {"group: 257 bytes", events.Event{Task: "a", Body: &events.Created{Ties: events.Ties{Group: strings.Repeat("g", events.MaxNameBytes+1)}}}},
		"parent of ties":        {"parent: task id", events.Event{Task: "a", Body: &events.Created{Ties: events.Ties{Parent: "a b"}}}},
		"given up entry":        {"loss at entry 17592186044416, want", events.Event{Body: &events.AcceptedLoss{Entry: 1 << 44}}},
		"last entry":            {"loss at entry 17592186044416, want", events.Event{Body: &events.Recovered{Entry: 1 << 44}}},
		"reason of a loss":      {"reason: 257 bytes", events.Event{Body: &events.AcceptedLoss{Reason: strings.Repeat("r", events.MaxNameBytes+1)}}},
		"text of a loss":        {"reason: want UTF-8", events.Event{Body: &events.Recovered{Reason: "\xff"}}},
		"reason of a pause":     {"reason: 257 bytes", events.Event{Body: &events.Paused{Reason: strings.Repeat("r", events.MaxNameBytes+1)}}},
		"text of a pause":       {"reason: want UTF-8", events.Event{Body: &events.Paused{Reason: "\xff"}}},
		"request of a record":   {"request id \"r\" in an event of the settings", events.Event{RequestID: "r", Body: &events.Unpaused{}}},
		"task of a record":      {"task \"a\"", events.Event{Task: "a", Body: &events.Unpaused{}}},
		"task of an item":       {"no item of a store", events.Event{Task: "a", Body: &events.ItemRemoved{ID: 1, Owner: 1}}},
		"item 0":                {"no item of a store", events.Event{Task: "store:a/0", Body: &events.ItemRemoved{ID: 1, Owner: 1}}},
		"item with a zero":      {"no item of a store", events.Event{Task: "store:a/01", Body: &events.ItemRemoved{ID: 1, Owner: 1}}},
		"store without a name":  {"0 bytes, want 1 to 64", events.Event{Task: "store:/1", Body: &events.ItemRemoved{ID: 1, Owner: 1}}},
		"name of a store":       {"65 bytes, want 1 to 64", events.Event{Task: events.StoreItem(strings.Repeat("s", events.MaxStoreBytes+1), 1), Body: &events.ItemRemoved{ID: 1, Owner: 1}}},
		"id 0":                  {"number 0, want 1", events.Event{Task: "store:a/1", Body: &events.ItemRemoved{Owner: 1}}},
		"id too large":          {"number 9007199254740993, want 1", events.Event{Task: "store:a/1", Body: &events.ItemReplaced{From: 1, To: events.MaxItemNumber + 1, Owner: 1}}},
		"owner 0":               {"number 0, want 1", events.Event{Task: "store:a/1", Body: &events.ItemReplaced{From: 1, To: 2}}},
		"item without a group":  {"group of 0 bytes", events.Event{Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Owner: 1, Data: events.Bytes(nil)}}},
		"group":                 {"group of 257 bytes", events.Event{Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Group: strings.Repeat("g", events.MaxGroupBytes+1), Owner: 1, Data: events.Bytes(nil)}}},
		"item without data":     {"data in codec 0", events.Event{Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Group: "g", Owner: 1}}},
		"data in JSON":          {"data in codec 1", events.Event{Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Group: "g", Owner: 1, Data: events.JSON([]byte("1"))}}},
		"group in no UTF-8":     {"group \"\\xff\": want UTF-8", events.Event{Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Group: "\xff", Owner: 1, Data: events.Bytes(nil)}}},
		"time before 1970":      {"time -1, want 0", events.Event{Task: "store:a/1", Body: &events.ItemReplaced{From: 1, To: 2, Owner: 1, At: -1}}},
		"work without run":      {"run 0 of a work", ofWork(&events.WorkPlanned{Failed: true})},
		"work without parts":    {"partitions: 0, want 1 to 64", ofWork(&events.WorkPlanned{Run: 1})},
		"two definitions":       {"a definition of a run that has the one of the run before", ofWork(&events.WorkPlanned{Run: 1, Failed: true, Definition: "d"})},
		"definition of a work":  {"definition: 65 bytes", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 1}, strings.Repeat("d", 65)))},
		"partition without id":  {"id of a partition \"\": 0 bytes, want 1 to 48", ofWork(planOf(events.WorkPartition{Buckets: 1, Workers: 1, Threads: 1}, ""))},
		"no buckets":            {"buckets: 0, want 1 to 1000000000", ofWork(planOf(events.WorkPartition{ID: "a", Workers: 1, Threads: 1}, ""))},
		"too many buckets":      {"buckets: 1000000001, want", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1e9 + 1, Workers: 1, Threads: 1}, ""))},
		"too many workers":      {"workers: 257, want 1 to 256", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 257, Threads: 1}, ""))},
		"too many threads":      {"threads: 257, want 1 to 256", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 257}, ""))},
		"rules too large":       {"rules: 16385 bytes exceed", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 1, Rules: make([]byte, 16<<10+1)}, ""))},
		"rules of a stream":     {"rules of a stream", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 1, Form: events.FormPrecise, Rules: []byte("r")}, ""))},
		"segments too large":    {"segments: 196609 bytes exceed", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 1, Segments: make([]byte, 192<<10+1)}, ""))},
		"mode of no partition":  {"mode 3, want less than 3", ofWork(planOf(events.WorkPartition{ID: "a", Mode: 3, Buckets: 1, Workers: 1, Threads: 1}, ""))},
		"counter without name":  {"counter \"\": 0 bytes", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 1, Thresholds: make([]events.WorkThreshold, 1)}, ""))},
		"counter twice":         {"counter \"c\" has two thresholds", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 1, Thresholds: []events.WorkThreshold{{Counter: "c"}, {Counter: "c"}}}, ""))},
		"partition twice":       {"partition \"a\" is there twice", ofWork(&events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{{ID: "a", Buckets: 1, Workers: 1, Threads: 1}, {ID: "a", Buckets: 1, Workers: 1, Threads: 1}}})},
		"partition 0":           {"partition 0, want 1 to 64", ofWork(&events.PartitionStarted{})},
		"partition 65":          {"partition 65, want 1 to 64", ofWork(&events.PartitionEnded{Partition: 65})},
		"bucket of no attempt":  {"worker 1 moves a bucket without an attempt", ofWork(&events.BucketsMoved{Worker: 1, Started: 1})},
		"no bucket":             {"no bucket moves", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1})},
		"bucket of all":         {"buckets of all workers do more than return", ofWork(&events.BucketsMoved{Started: 1, Cause: events.ReturnedGivenUp})},
		"ended and returned":    {"is returned", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1, Ended: 1, Returned: 1, Cause: events.ReturnedFailed})},
		"returned for nothing":  {"bucket 1 is returned for cause 0", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1, Returned: 1})},
		"caused by nothing":     {"bucket 1 is returned for cause 5", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1, Returned: 1, Cause: 5})},
		"bucket of no number":   {"bucket 1000000001, want", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1, Started: 1e9 + 1})},
		"items of all":          {"items: 9007199254740993 done", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1, Ended: 1, Items: events.ItemCounts{Done: 1<<53 + 1}})},
		"errors of no items":    {"errors: 1 of 0 failed items", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1, Ended: 1, Errors: make([]events.ItemError, 1)})},
		"errors of a bucket":    {"errors: 8193 bytes exceed", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1, Ended: 1, Items: events.ItemCounts{Failed: 1}, Errors: []events.ItemError{{Message: strings.Repeat("m", 8<<10+1)}}})},
		"text of an error":      {"errors: want UTF-8", ofWork(&events.BucketsMoved{Worker: 1, Attempt: 1, Ended: 1, Items: events.ItemCounts{Failed: 1}, Errors: []events.ItemError{{Item: "\xff"}}})},
		"permits of no item":    {"0 permits, want 1 to 256", ofWork(&events.PermitsGranted{Counter: "c", Bucket: 1})},
		"permits of no bucket":  {"permits of bucket 0", ofWork(&events.PermitsGranted{Counter: "c", Items: []uint64{1}})},
		"permits of no counter": {"counter \"\": 0 bytes", ofWork(&events.PermitsGranted{Bucket: 1, Items: []uint64{1}})},
		"reset of nothing":      {"reset of 0, want 1 to 4", ofWork(&events.WorkReset{})},
		"token of no stream":    {"a token in a reset of 1", ofWork(&events.WorkReset{What: events.ResetAll, Token: "t"})},
		"token of a reset":      {"token: 4097 bytes exceed", ofWork(&events.WorkReset{What: events.ResetToken, Token: strings.Repeat("t", 4097)})},
		"reason of a reset":     {"reason: 257 bytes", ofWork(&events.WorkReset{What: events.ResetToken, Reason: strings.Repeat("r", 257)})},
		"form of no partition":  {"form 4, want less than 4", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 1, Form: 4}, ""))},
		"buckets of a stream":   {"a stream of 2 buckets", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 2, Workers: 1, Threads: 1, Form: 1}, ""))},
		"workers of a stream":   {"1 buckets and 2 workers", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 2, Threads: 1, Form: 1}, ""))},
		"full stream told":      {"told to move its token", ofWork(planOf(events.WorkPartition{ID: "a", Buckets: 1, Workers: 1, Threads: 1, Form: 1, MovesToken: true}, ""))},
		"token of no attempt":   {"a token moves without an attempt", ofWork(&events.TokenMoved{Token: "t"})},
		"token too long":        {"token: 4097 bytes exceed", ofWork(&events.TokenMoved{Attempt: 1, Token: strings.Repeat("t", 4097)})},
		"simulation of none":    {"the end of a simulation without a token", ofWork(&events.TokenMoved{Attempt: 1, Simulated: true})},
		"open changes":          {"9007199254740993 changes are open", ofWork(&events.TokenMoved{Attempt: 1, Open: 1<<53 + 1})},
		"oldest change":         {"time -1 of the oldest change", ofWork(&events.TokenMoved{Attempt: 1, Oldest: -1})},
		"errors of a stream":    {"errors: 1 of 0 failed items", ofWork(&events.TokenMoved{Attempt: 1, Errors: make([]events.ItemError, 1)})},
		"hold 0":                {"hold 0 of attempt 1", ofWork(&events.ChangeHeld{Attempt: 1, Partition: 1, Key: "k"})},
		"hold of no attempt":    {"hold 1 of attempt 0", ofWork(&events.ChangeHeld{Hold: 1, Partition: 1, Key: "k"})},
		"hold of no partition":  {"partition 0, want 1 to 64", ofWork(&events.ChangeHeld{Attempt: 1, Hold: 1, Key: "k"})},
		"change without a key":  {"key of a change: 0 bytes", ofWork(&events.ChangeHeld{Attempt: 1, Hold: 1, Partition: 1})},
		"key of a change":       {"key of a change: 1025 bytes", ofWork(&events.ChangeHeld{Attempt: 1, Hold: 1, Partition: 1, Key: strings.Repeat("k", 1025)})},
		"name of a change":      {"name of a change: 4097 bytes", ofWork(&events.ChangeHeld{Attempt: 1, Hold: 1, Partition: 1, Key: "k", At: strings.Repeat("a", 4097)})},
		"data of a change":      {"data of a change: 196609 bytes", ofWork(&events.ChangeHeld{Attempt: 1, Hold: 1, Partition: 1, Key: "k", Data: make([]byte, 192<<10+1)})},
		"code of a change":      {"of a change: want 256 bytes", ofWork(&events.ChangeHeld{Attempt: 1, Hold: 1, Partition: 1, Key: "k", Code: strings.Repeat("c", 257)})},
		"message of a change":   {"message of a change: 1025 bytes", ofWork(&events.ChangeHeld{Attempt: 1, Hold: 1, Partition: 1, Key: "k", Message: strings.Repeat("m", 1025)})},
		"text of a change":      {"message of a change: 1 bytes", ofWork(&events.ChangeHeld{Attempt: 1, Hold: 1, Partition: 1, Key: "k", Message: "\xff"})},
		"move of no hold":       {"hold 0", ofWork(&events.HoldMoved{Done: 1})},
		"hold that stays":       {"hold 1 does not move", ofWork(&events.HoldMoved{Hold: 1})},
		"changes of a hold":     {"1001 changes of a hold", ofWork(&events.HoldMoved{Hold: 1, Done: 1001})},
		"tags of a task":        {"11 tags exceed the limit of 10", ofWork(&events.Described{Tags: manyTags(11)})},
		"order of tags":         {"tag \"a\" follows tag \"b\"", ofWork(&events.Described{Tags: []string{"b", "a"}})},
		"tag twice":             {"tag \"a\" follows tag \"a\"", ofWork(&events.Described{Tags: []string{"a", "a"}})},
		"tag of no text":        {"tag of 0 bytes, want 1 to 64", ofWork(&events.Described{Tags: []string{""}})},
		"tag of spaces":         {"tag \"a b\": want letters", ofWork(&events.Described{Tags: []string{"a b"}})},
		"deadline before all":   {"deadline -1, want 0 or later", ofWork(&events.Described{Deadline: -1})},
		"forgotten store":       {"0 bytes, want 1 to 64", events.Event{Body: &events.StoreForgotten{Last: 1}}},
		"last id of a store":    {"number 0, want 1", events.Event{Body: &events.StoreForgotten{Store: "a"}}},
		"reason of a time":      {"reason: 257 bytes", events.Event{Task: "a", Body: &events.Rescheduled{Reason: strings.Repeat("r", events.MaxNameBytes+1)}}},
		"terms of a time":       {"policy: max attempts -1", events.Event{Task: "a", Body: &events.Rescheduled{Terms: &bad}}},
		"terms of a merge":      {"policy: max attempts -1", events.Event{Task: "a", Body: &events.Merged{Terms: &bad}}},
		"terms of a join":       {"policy: max attempts -1", events.Event{Task: "a", Body: &events.Joined{Terms: &bad}}},
		"time of an item":       {"time 253402300800000", events.Event{Task: "store:a/1", Body: &events.ItemReplaced{From: 1, To: 2, Owner: 1, At: events.MaxItemTime + 1}}},
	} {
		var b events.Builder
		b.Reset(sampleHead())
		b.Add(events.Event{Task: "a", Body: &events.Deleted{}})
		b.Add(c.ev)
		if _, err := b.Seal(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestSeal_RefusesNothingAndTooMuch(t *testing.T) {
	var b events.Builder
	b.Reset(sampleHead())
	if _, err := b.Seal(); err == nil || !strings.Contains(err.Error(), "0 events, want 1048576 at most, or 0 origins") {
		t.Errorf("an entry without events: %v", err)
	}
	largest := events.JSON(bytes.Repeat([]byte{' '}, events.MaxPayloadBytes))
	for range 3 {
		b.Add(events.Event{Task: "a", Body: &events.Merged{Params: largest}})
	}
	if _, err := b.Seal(); err == nil || !strings.Contains(err.Error(), fmt.Sprint("exceed the limit of ", events.MaxEntryBytes)) {
		t.Errorf("an entry above MaxEntryBytes: %v", err)
	}
	b.Reset(sampleHead())
	b.Add(events.Event{Task: "a", Body: &events.Created{Params: largest}})
	b.Add(events.Event{Task: "a", Body: &events.Succeeded{Result: largest}})
	data, err := b.Seal()
	if err != nil {
		t.Fatalf("the largest parameters and the largest result in one entry: %v", err)
	}
	if _, err := events.Decode(data); err != nil {
		t.Error(err)
	}
}

// refusedFor checks that an entry is refused for what the error says.
func refusedFor(t *testing.T, data []byte, want string) {
	t.Helper()
	if e, err := events.Decode(data); !errors.Is(err, events.ErrDamaged) || e != nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, %v; want an error that wraps ErrDamaged with %q", e, err, want)
	}
}

func TestDecode_RefusesNumbersOutOfRange(t *testing.T) {
	for _, c := range []struct {
		shard, number, lane uint64
		prev                int
		rules               uint64
		want                string
	}{
		{0, 1, 0, 32, events.FoldRules, ""},
		{1<<16 - 1, 1<<44 - 1, 255, 32, events.FoldRules, ""},
		{1 << 16, 1, 0, 32, events.FoldRules, "head: malformed msgpack: number 65536 exceeds 65535"},
		{0, 1 << 44, 0, 32, events.FoldRules, "head: malformed msgpack: number 17592186044416 exceeds"},
		{0, 1, 256, 32, events.FoldRules, "origin 0 of entry 1: malformed msgpack: number 256 exceeds 255"},
		{0, 1, 0, 31, events.FoldRules, "hash of 31 bytes"},
		{0, 1, 0, 33, events.FoldRules, "hash of 33 bytes"},
		{0, 1, 0, 32, 0, "rules 0 of the fold"},
	} {
		var w wire.Writer
		w.Array(8)
		w.Uint(c.shard)
		w.Uint(c.number)
		w.Int(1)
		w.Text("n")
		w.Int(1)
		w.Bytes(make([]byte, c.prev))
		w.Uint(1)
		w.Uint(c.rules)
		forged := forge(w.B, origin(c.lane), header(uint64(events.KindDeleted), 1, func(w *wire.Writer) { w.Array(0) }))
		if c.want != "" {
			refusedFor(t, forged, c.want)
		} else if _, err := events.Decode(forged); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	_, data := seal(t, sampleHead(), sampleOrigins[:1], samples()[1])
	genuine := parse(t, data)
	none := func(w *wire.Writer) { w.Array(0) }
	started := func(attempt uint64) func(w *wire.Writer) {
		return func(w *wire.Writer) {
			w.Array(4)
			w.Text("n")
			w.Uint(attempt)
			w.Uint(0)
			w.Int(0)
		}
	}
	created := func(existing int64, ties ...string) func(w *wire.Writer) {
		return func(w *wire.Writer) {
			w.Array(4 + len(ties)/3)
			w.Text("b")
			w.Int(0)
			w.Int(0)
			w.Array(11)
			for _, v := range []int64{0, 1, 1, 0, 0, 0, existing, 0, 0, 1, 0} {
				w.Int(v)
			}
			for i, text := range ties {
				if i == 0 {
					w.Array(3)
				}
				w.Text(text)
			}
		}
	}
	rescheduled := func(reason string) func(w *wire.Writer) {
		return func(w *wire.Writer) {
			w.Array(3)
			w.Int(1)
			w.Array(0)
			w.Text(reason)
		}
	}
	for _, c := range []struct {
		kind, origin uint64
		body         func(w *wire.Writer)
		want         string
	}{
		{uint64(events.KindDeleted), 1, none, ""},
		{uint64(events.KindStarted), 0, started(1<<32 - 1), ""},
		{uint64(events.KindCreated), 1, created(1), ""},
		{uint64(events.KindCreated), 1, created(1, "", "s", ""), ""},
		{uint64(events.KindRescheduled), 1, rescheduled("why"), ""},
		{0, 1, none, "kind 0 of event"},
		{uint64(len(events.Kinds()) + 1), 1, none, fmt.Sprint("kind ", len(events.Kinds())+1, " of event")},
		{256 + uint64(events.KindDeleted), 1, none, fmt.Sprint("kind ", 256+uint64(events.KindDeleted), " of event")},
		{uint64(events.KindDeleted), 2, none, "origin 2 of 1"},
		{uint64(events.KindDeleted), 1 << 63, none, "number 9223372036854775808 exceeds 2147483647"},
		{uint64(events.KindStarted), 1, started(1 << 32), "number 4294967296 exceeds 4294967295"},
		{uint64(events.KindCreated), 1, created(2), "policy: existing 2"},
		{uint64(events.KindCreated), 1, created(256), "policy: existing 255"},
		{uint64(events.KindCreated), 1, created(1, "", "", ""), "ties to nothing"},
		{uint64(events.KindRescheduled), 1, rescheduled(""), "a reason of nothing"},
		{uint64(events.KindRescheduled), 1, rescheduled(strings.Repeat("r", events.MaxNameBytes+1)), "reason: 257 bytes exceed the limit of 256"},
	} {
		forged := forge(genuine.head, genuine.origins[0], header(c.kind, c.origin, c.body))
		if c.want != "" {
			refusedFor(t, forged, c.want)
		} else if _, err := events.Decode(forged); err != nil {
			t.Errorf("kind %d within its ranges: %v", c.kind, err)
		}
	}
}

// header encodes the header of an event without any check.
func header(kind, origin uint64, body func(*wire.Writer)) []byte {
	var w wire.Writer
	w.Array(7)
	w.Uint(kind)
	w.Text("a")
	w.Uint(1)
	w.Uint(0)
	w.Uint(origin)
	w.Text("")
	body(&w)
	return w.B
}

// origin encodes an origin without any check.
func origin(lane uint64) []byte {
	var w wire.Writer
	w.Array(4)
	w.Text("s")
	w.Uint(lane)
	w.Uint(1)
	w.Text("p")
	return w.B
}

// forge stores an entry of one origin without answers and one event without payload, whose hash fits, without any
// check.
func forge(head, origin, header []byte) []byte { return forgeWith(head, origin, header, nil) }

// forgeWith is forge of an event with a payload.
func forgeWith(head, origin, header, payload []byte) []byte {
	o, e := digest(origin, nil), digest(header, payload)
	return raw{head: head, origins: [][]byte{origin}, answers: [][]byte{nil}, headers: [][]byte{header}, payloads: [][]byte{payload},
		hash: chain(head, slices.Concat(o[:], e[:]))}.join()
}

// chain is the hash of an entry; the first binary string of 32 bytes in its head is the hash of the entry before.
func chain(head, digests []byte) []byte {
	_, prev, _ := bytes.Cut(head, []byte{0xc4, sha256.Size})
	headSum := sha256.Sum256(head)
	sum := sha256.Sum256(slices.Concat(prev[:min(len(prev), sha256.Size)], headSum[:], digests))
	return sum[:]
}

func TestDecode_NamesWhatItFound(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	for _, version := range []byte{events.EntryVersion - 1, events.EntryVersion + 1} {
		data[1] = version
		if _, err := events.Decode(data); !errors.Is(err, events.ErrVersion) || !strings.Contains(err.Error(), fmt.Sprintf("version %d", version)) {
			t.Errorf("an entry of another version: %v, want its version named", err)
		}
	}
	data[1] = events.EntryVersion
	data[len(data)-1]++
	if _, err := events.Decode(data); err == nil || !strings.Contains(err.Error(), "entry 42 of shard 11") {
		t.Errorf("an entry with another hash: %v, want entry and shard named", err)
	}
}

// The byte that names the kind of an event may be what is damaged: no version of the program has written that.
func TestDecode_OfAKindThatTheHashContradictsIsDamageAndNoVersion(t *testing.T) {
	_, data := seal(t, sampleHead(), nil, samples()[0])
	at := bytes.Index(data, []byte("\x97\x01\xac"+"orders/purge")) + 1
	for _, kind := range []byte{0, 0x7f} {
		broken := bytes.Clone(data)
		broken[at] = kind
		if _, err := events.Decode(broken); !errors.Is(err, events.ErrDamaged) || errors.Is(err, events.ErrVersion) {
			t.Errorf("kind %d: %v, want damage alone", kind, err)
		}
	}
}

// What a later release adds to a plan is passed over in answers, and refused in what is stored.
func TestSchedulePlan_OfALaterReleaseIsReadWhereItIsTold(t *testing.T) {
	var w wire.Writer
	uuids.Encode(&w)
	later := append(bytes.Clone(w.B), 1)
	later[0]++ // an array of one more
	var told, stored events.SchedulePlan
	err := wire.Told(later, func(data []byte) error {
		r := wire.NewReader(data)
		told = events.SchedulePlan{}
		told.Decode(r)
		return r.Close()
	})
	if err != nil || told != uuids {
		t.Errorf("told: %+v, %v, want %+v", told, err, uuids)
	}
	r := wire.NewReader(later)
	if stored.Decode(r); !errors.Is(r.Close(), wire.ErrTail) {
		t.Errorf("stored: %v, want %v", r.Close(), wire.ErrTail)
	}
}

func manyTags(n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprintf("tag-%02d", i))
	}
	return tags
}
