package events_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
)

func TestPosition_TextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entry, index := rapid.Uint64Range(0, 1<<44-1).Draw(t, "entry"), rapid.IntRange(0, events.MaxEntryEvents-1).Draw(t, "index")
		p := events.Position{Shard: rapid.Uint16().Draw(t, "shard"), Ref: events.RefOf(entry, index)}
		if p.Ref.Entry() != entry || p.Ref.Index() != index {
			t.Fatalf("Ref of %d, %d holds %d, %d", entry, index, p.Ref.Entry(), p.Ref.Index())
		}
		got, err := events.ParsePosition(p.String())
		if err != nil || got != p {
			t.Fatalf("%s is parsed as %s, %v", p, got, err)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		got = events.Position{}
		if err := json.Unmarshal(text, &got); err != nil || got != p {
			t.Fatalf("%s is read as %s, %v", text, got, err)
		}
	})
}

func TestPosition_TextIsShardEntryIndex(t *testing.T) {
	p := events.Position{Shard: 11, Ref: events.RefOf(42, 7)}
	if got, want := p.String(), "11.42.7"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	if got, want := uint64(p.Ref), uint64(42*1_048_576+7); got != want {
		t.Errorf("the fencing token is %d, want %d", got, want)
	}
}

func TestParsePosition_RefusesOtherText(t *testing.T) {
	for _, s := range []string{"", "1", "1.2", "1.2.3.4", "1..3", "a.2.3", "-1.2.3", "1.+2.3", "1.2.3 ", "65536.0.0",
		"0.17592186044416.0", "0.0.1048576", "1.2.0x3"} {
		if p, err := events.ParsePosition(s); err == nil {
			t.Errorf("ParsePosition(%q) = %s, want an error", s, p)
		}
	}
}

func TestRef_OrdersTheEventsOfAShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entry, index := rapid.Uint64Range(0, 1<<44-2), rapid.IntRange(0, events.MaxEntryEvents-1)
		e1, i1, e2, i2 := entry.Draw(t, "e1"), index.Draw(t, "i1"), entry.Draw(t, "e2"), index.Draw(t, "i2")
		before := e1 < e2 || e1 == e2 && i1 < i2
		if got := events.RefOf(e1, i1) < events.RefOf(e2, i2); got != before {
			t.Fatalf("Ref(%d, %d) < Ref(%d, %d) is %v", e1, i1, e2, i2, got)
		}
	})
}

func TestMillis_TextRoundTrip(t *testing.T) {
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMilli()
	rapid.Check(t, func(t *rapid.T) {
		m := events.Millis(rapid.Int64Range(first+1, last).Draw(t, "millis"))
		text, err := m.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got events.Millis
		if err := got.UnmarshalText(text); err != nil || got != m {
			t.Fatalf("%d as %q is read as %d, %v", m, text, got, err)
		}
		if got := events.MillisOf(m.Time()); got != m {
			t.Fatalf("%d as a time is %d", m, got)
		}
	})
}

func TestMillis_TextIsRFC3339InUTCAndNothingForNone(t *testing.T) {
	for _, row := range []struct {
		m    events.Millis
		text string
	}{{sampleTime, "2023-11-14T22:13:20.123Z"}, {1, "1970-01-01T00:00:00.001Z"}, {-1, "1969-12-31T23:59:59.999Z"}, {0, ""}} {
		if got, err := row.m.MarshalText(); err != nil || string(got) != row.text {
			t.Errorf("%d: %q, %v; want %q", row.m, got, err, row.text)
		}
		var got events.Millis = 99
		if err := got.UnmarshalText([]byte(row.text)); err != nil || got != row.m {
			t.Errorf("%q: %d, %v; want %d", row.text, got, err, row.m)
		}
	}
	var m events.Millis
	if err := m.UnmarshalText([]byte("2023-11-14T23:13:20.123+01:00")); err != nil || m != sampleTime {
		t.Errorf("another zone: %d, %v; want %d", m, err, sampleTime)
	}
	if err := m.UnmarshalText([]byte("yesterday")); err == nil {
		t.Error("other text was accepted")
	}
}

func TestMillis_NoneIsTheZeroTime(t *testing.T) {
	if got := events.MillisOf(time.Time{}); got != 0 {
		t.Errorf("MillisOf(zero time) = %d, want 0", got)
	}
	if got := events.Millis(0).Time(); !got.IsZero() {
		t.Errorf("Millis(0).Time() = %s, want the zero time", got)
	}
	if got, want := sampleTime.Add(1999*time.Microsecond), sampleTime+1; got != want {
		t.Errorf("Add of 1.999 ms = %d, want %d", got, want)
	}
}
