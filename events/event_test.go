package events_test

import (
	"fmt"
	"strings"
	"testing"

	"taskledger/events"
)

func TestKind_NamesAndNumbersArePinned(t *testing.T) {
	want := []string{"Created", "Started", "Progressed", "Succeeded", "Failed", "Snoozed", "Lost", "Released", "Rescheduled", "Merged",
		"Suspended", "Resumed", "CancelRequested", "Deleted", "Joined", "AcceptedLoss", "Recovered", "Paused", "Unpaused",
		"ItemAdded", "ItemReplaced", "ItemRemoved", "StoreForgotten", "ScheduleSet", "Ticked",
		"SchedulePaused", "ScheduleResumed", "BackfillSet", "BackfillEnded", "ScheduleEnded", "ScheduleDefined",
		"WorkPlanned", "PartitionStarted", "PartitionEnded", "BucketsMoved", "PermitsGranted", "WorkReset",
		"TokenMoved", "ChangeHeld", "HoldMoved", "Described"}
	kinds := events.Kinds()
	if len(kinds) != len(want) {
		t.Fatalf("%d kinds, want %d", len(kinds), len(want))
	}
	for i, k := range kinds {
		if text, err := k.MarshalText(); int(k) != i+1 || string(text) != want[i] || err != nil {
			t.Errorf("kind %d is %q, %v; want %d, %q", k, text, err, i+1, want[i])
		}
	}
	for _, k := range []events.Kind{0, events.Kind(len(want) + 1), 255} {
		if got, want := k.String(), fmt.Sprintf("Kind(%d)", k); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}

func TestKind_IsNamedAfterItsBody(t *testing.T) {
	for _, ev := range samples() {
		if got, want := ev.Kind().String(), strings.TrimPrefix(fmt.Sprintf("%T", ev.Body), "*events."); got != want {
			t.Errorf("kind %d of %T is called %s", ev.Kind(), ev.Body, got)
		}
	}
}

func TestErrorFit_LeavesWhatFitsAlone(t *testing.T) {
	e := events.Error{Code: "forbidden", Message: strings.Repeat("m", events.MaxPayloadBytes/2), Retryable: true,
		Properties: map[string]string{"a": strings.Repeat("v", events.MaxPayloadBytes/2-1)}}
	got := e.Fit()
	if got.Code != e.Code || got.Message != e.Message || !got.Retryable || got.Properties["a"] != e.Properties["a"] {
		t.Error("an error within its limits was changed")
	}
}

func TestErrorFit_CutsEveryPartAndStillFitsAnEntry(t *testing.T) {
	many := map[string]string{}
	for i := range events.MaxProperties + 1 {
		many[fmt.Sprint(i)] = "v"
	}
	for name, e := range map[string]events.Error{
		"code":             {Code: strings.Repeat("c", 1<<20)},
		"message":          {Message: strings.Repeat("m", 1<<20)},
		"large properties": {Properties: map[string]string{"a": strings.Repeat("v", 1<<20)}},
		"many properties":  {Properties: many},
		"all": {Code: strings.Repeat("c", 1<<20), Message: strings.Repeat("m", 1<<20),
			Properties: map[string]string{strings.Repeat("n", 1<<20): ""}},
	} {
		got := e.Fit()
		if len(got.Code) > events.MaxNameBytes || len(got.Message) > events.MaxPayloadBytes/2 || len(got.Properties) > events.MaxProperties {
			t.Errorf("%s: code of %d, message of %d bytes, %d properties", name, len(got.Code), len(got.Message), len(got.Properties))
		}
		if len(e.Message) > 0 && !strings.HasSuffix(got.Message, "(cut)") {
			t.Errorf("%s: the message does not say that it was cut", name)
		}
		if len(e.Properties) > 0 && !strings.Contains(got.Properties["properties"], "dropped") {
			t.Errorf("%s: the properties %v do not say that others were dropped", name, got.Properties)
		}
		_, data := seal(t, sampleHead(), nil, events.Event{Task: "a", Body: &events.Failed{Error: got}})
		if _, err := events.Decode(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPayload_JSONRoundTrip(t *testing.T) {
	text := []byte(`{"a":1}`)
	p := events.JSON(text)
	text[0] = 'x'
	if got, err := p.JSON(); err != nil || string(got) != `{"a":1}` {
		t.Errorf("JSON = %q, %v after the text given was changed", got, err)
	}
	if len(p) != 8 || p[0] != 1 {
		t.Errorf("payload %x, want the codec's number 1 and 7 bytes", []byte(p))
	}
}

func TestPayload_NoneIsNil(t *testing.T) {
	if p := events.JSON(nil); p != nil {
		t.Errorf("JSON(nil) = %x, want nil", []byte(p))
	}
	if p := events.JSON([]byte{}); p != nil {
		t.Errorf("JSON of nothing = %x, want nil", []byte(p))
	}
	if text, err := events.Payload(nil).JSON(); text != nil || err != nil {
		t.Errorf("nil as JSON = %q, %v, want nothing", text, err)
	}
}

func TestPayload_RefusesOtherCodecs(t *testing.T) {
	for _, p := range []events.Payload{{}, {1}, {0, '1'}, {2, '1'}, {255, 1, 2}} {
		if text, err := p.JSON(); err == nil {
			t.Errorf("payload %x as JSON = %q, want an error", []byte(p), text)
		}
	}
}
