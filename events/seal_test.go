package events_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/wire"
)

// extreme draws texts at the limits and beyond, and what is no UTF-8.
var extreme = rapid.OneOf(rapid.StringN(0, 5, -1), rapid.SampledFrom([]string{"", "\xff", "\x00", "a/", "a/b", strings.Repeat("x", events.MaxIDBytes+1),
	strings.Repeat("x", events.MaxNameBytes), strings.Repeat("x", events.MaxNameBytes+1), strings.Repeat("x", 300), strings.Repeat("x", 1<<16)}))

var extremePayload = rapid.Map(rapid.SampledFrom([]int{-1, 0, 1, 7, events.MaxPayloadBytes, events.MaxPayloadBytes + 1, events.MaxPayloadBytes + 2}), func(n int) events.Payload {
	if n < 0 {
		return nil
	}
	return make(events.Payload, n)
})

// rarely is true once in a while: an entry whose every value is extreme is never sealed.
func rarely(t *rapid.T, what string) bool { return rapid.IntRange(0, 11).Draw(t, what) == 0 }

// drawExtremeBody is a body of any kind, of which some value may be out of range.
func drawExtremeBody(t *rapid.T) events.Body {
	body := drawBody(t, extreme)
	switch b := body.(type) {
	case *events.Created:
		if rarely(t, "extreme policy") {
			b.Policy.MaxAttempts, b.Policy.Priority = rapid.Int().Draw(t, "attempts"), rapid.Int64().Draw(t, "policy's priority")
		}
		if rarely(t, "extreme ties") {
			b.Ties = events.Ties{Parent: events.TaskID(extreme.Draw(t, "parent")), Schedule: extreme.Draw(t, "schedule"), Group: extreme.Draw(t, "group"), By: extreme.Draw(t, "by")}
		}
		b.Params = extremePayload.Draw(t, "params")
	case *events.Merged:
		b.Params = extremePayload.Draw(t, "params")
	case *events.Succeeded:
		b.Result = extremePayload.Draw(t, "result")
	case *events.Failed:
		if rarely(t, "many properties") {
			b.Error.Properties = map[string]string{}
			for i := range rapid.IntRange(events.MaxProperties-1, events.MaxProperties+2).Draw(t, "properties") {
				b.Error.Properties[fmt.Sprint(i)] = ""
			}
		}
	case *events.ScheduleSet:
		b.Params, b.Plan.Keep = extremePayload.Draw(t, "params"), rapid.Uint32Range(0, events.MaxKeptRuns+1).Draw(t, "keep")
	case *events.ScheduleDefined:
		b.Params, b.Plan.Names = extremePayload.Draw(t, "params"), events.RunNames(rapid.IntRange(0, 2).Draw(t, "any names"))
		b.Reason = extreme.Draw(t, "reason")
	case *events.Ticked:
		b.Cause, b.Run = events.TickCause(rapid.IntRange(0, 8).Draw(t, "cause")), events.TaskID(extreme.Draw(t, "run"))
	case *events.BackfillSet:
		b.Ticks = rapid.Uint32Range(0, events.MaxBackfill+1).Draw(t, "ticks")
	case *events.WorkPlanned:
		if b.Run = rapid.Uint32Range(0, 2).Draw(t, "run"); len(b.Partitions) > 0 {
			p := &b.Partitions[0]
			p.ID, p.Buckets = extreme.Draw(t, "id"), rapid.Uint64Range(0, 2*events.MaxBuckets).Draw(t, "buckets")
			p.Thresholds = make([]events.WorkThreshold, rapid.IntRange(0, 2*events.MaxThresholds).Draw(t, "thresholds"))
			for i := range p.Thresholds {
				p.Thresholds[i].Counter = fmt.Sprint(i)
			}
		}
	case *events.BucketsMoved:
		b.Started, b.Cause = rapid.Uint64Range(0, 2*events.MaxBuckets).Draw(t, "started"), events.ReturnCause(rapid.IntRange(0, 4).Draw(t, "cause"))
		if b.Items.Failed > 30 {
			b.Errors = make([]events.ItemError, rapid.IntRange(0, 30).Draw(t, "errors"))
		}
	case *events.PermitsGranted:
		b.Items = make([]uint64, rapid.IntRange(0, 2*events.MaxPermits).Draw(t, "items"))
	case *events.WorkReset:
		b.What = events.ResetScope(rapid.IntRange(0, 5).Draw(t, "any scope"))
	case *events.TokenMoved:
		b.Token, b.Open = extreme.Draw(t, "token"), rapid.Uint64().Draw(t, "any open")
	case *events.ChangeHeld:
		b.Key, b.Message = extreme.Draw(t, "key"), extreme.Draw(t, "any message")
	case *events.HoldMoved:
		b.Done = rapid.Uint32Range(0, 2*events.MaxHeldChanges).Draw(t, "any done")
	case *events.Described:
		b.Tags = rapid.SliceOfN(extreme, 0, 2*events.MaxTags).Draw(t, "any tags")
		b.Deadline = events.Millis(rapid.Int64().Draw(t, "any deadline"))
	case *events.AcceptedLoss:
		b.Entry = rapid.Uint64().Draw(t, "any entry")
	case *events.Recovered:
		b.Entry = rapid.Uint64().Draw(t, "any entry")
	}
	return body
}

// What Seal took is committed, and a shard whose journal holds what Decode refuses would be quarantined for ever.
func TestSeal_TakesNothingThatDecodeRefuses(t *testing.T) {
	sealed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var b events.Builder
		head := events.Entry{Shard: rapid.Uint16().Draw(t, "shard"), Number: rapid.Uint64Range(0, 1<<44-1).Draw(t, "number"), Owner: extreme.Draw(t, "owner")}
		if rarely(t, "any number") {
			head.Number = rapid.Uint64().Draw(t, "any number")
		}
		b.Reset(head)
		origins := rapid.IntRange(0, 2).Draw(t, "origins")
		for i := range origins {
			o := events.Origin{Sender: extreme.Draw(t, "sender"), Lane: rapid.Byte().Draw(t, "lane"), Number: rapid.Uint64().Draw(t, "batch"),
				Caller: events.Caller{Principal: extreme.Draw(t, "principal")}, Answers: drawBytes(t)}
			if i > 0 && rarely(t, "caller") {
				o = events.Origin{Batch: rapid.IntRange(1, i).Draw(t, "of"), Caller: events.Caller{RequestID: extreme.Draw(t, "caller's request")}}
			}
			b.AddOrigin(o)
		}
		for range rapid.IntRange(0, 3).Draw(t, "events") {
			ev := events.Event{Seq: rapid.Uint64().Draw(t, "seq"), Prev: events.Ref(rapid.Uint64().Draw(t, "prev")), Body: drawExtremeBody(t),
				Origin: rapid.IntRange(0, origins).Draw(t, "origin")}
			if (ev.Kind().Record() == events.OfTask) != rarely(t, "of another record") {
				ev.Task, ev.RequestID = drawTaskID(t), extreme.Draw(t, "request")
			}
			switch ev.Kind().Record() {
			case events.OfItem:
				ev.Task = drawItem(t)
			case events.OfSchedule:
				ev.Task, ev.RequestID = drawSchedule(t), ""
			}
			if rarely(t, "any task") {
				ev.Task = events.TaskID(extreme.Draw(t, "any task"))
			}
			b.Add(ev)
		}
		data, err := b.Seal()
		if err != nil {
			refused++
			return
		}
		sealed++
		if _, err := events.Decode(data); err != nil {
			t.Fatalf("sealed, and refused: %v", err)
		}
	})
	if sealed == 0 || refused == 0 {
		t.Errorf("%d entries were sealed, %d refused: the test shows nothing", sealed, refused)
	}
}

// What stands where nothing belongs would be lost when the event is written again.
func TestDecode_RefusesAPayloadBehindAKindThatHasNone(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins[:1], samples()[10])
	suspended := parse(t, data)
	for _, payload := range [][]byte{{}, {1}, nil} {
		forged := forgeWith(suspended.head, suspended.origins[0], suspended.headers[0], payload)
		if _, err := events.Decode(forged); (err == nil) != (payload == nil) || err != nil && !strings.Contains(err.Error(), "Suspended") {
			t.Errorf("Suspended with payload %#v: %v", payload, err)
		}
	}
}

func TestDecode_RefusesARequestIDInAnEventOfARecord(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins[:1], samples()[18])
	unpaused := parse(t, data)
	for _, request := range []string{"r-1", ""} {
		var w wire.Writer
		w.Array(7)
		w.Uint(uint64(events.KindUnpaused))
		w.Text("")
		w.Uint(19)
		w.Uint(1)
		w.Uint(0)
		w.Text(request)
		w.Array(1)
		w.Text("purge-table")
		forged := forge(unpaused.head, unpaused.origins[0], w.B)
		if _, err := events.Decode(forged); (err == nil) != (request == "") || err != nil && !strings.Contains(err.Error(), request) {
			t.Errorf("request id %q: %v", request, err)
		}
	}
}
