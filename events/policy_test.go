package events_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
)

const tenYears = 10 * 365 * 24 * time.Hour

func drawPolicy(t *rapid.T) events.Policy {
	times := func(name string) time.Duration {
		return time.Duration(rapid.Int64Range(0, tenYears.Milliseconds()).Draw(t, name)) * time.Millisecond
	}
	count := rapid.IntRange(0, 1_000_000)
	return events.Policy{
		Timeout: times("timeout"), MaxAttempts: count.Draw(t, "attempts"), MaxLost: count.Draw(t, "lost"), LostDelay: times("delay"),
		Backoff:  events.Backoff{Base: times("base"), Max: times("max")},
		Existing: rapid.SampledFrom([]events.Existing{events.ReturnRecorded, events.RunAgain}).Draw(t, "existing"),
		Priority: rapid.Int64Range(0, events.MaxPriority).Draw(t, "priority"), Retain: times("retain"), RetainCount: count.Draw(t, "retain count"),
		Every: times("every"),
	}
}

func TestPolicy_CompleteFillsInTheDefaults(t *testing.T) {
	got, err := events.Policy{}.Complete()
	want := events.Policy{MaxAttempts: 25, MaxLost: 10, LostDelay: 4 * time.Second, Backoff: events.Backoff{Base: time.Second, Max: time.Hour}, Retain: 24 * time.Hour,
		RetainCount: 10_000}
	if err != nil || got != want {
		t.Errorf("Complete = %+v, %v; want %+v", got, err, want)
	}
	if got, err := samplePolicy.Complete(); err != nil || got != samplePolicy {
		t.Errorf("Complete changes a complete policy to %+v, %v", got, err)
	}
}

func TestPolicy_CompleteNamesTheFieldOutOfRange(t *testing.T) {
	for name, p := range map[string]events.Policy{
		"timeout":      {Timeout: -1},
		"lost delay":   {LostDelay: tenYears + 1},
		"backoff base": {Backoff: events.Backoff{Base: -time.Hour}},
		"backoff max":  {Backoff: events.Backoff{Max: math.MaxInt64}},
		"retain":       {Retain: math.MinInt64},
		"max attempts": {MaxAttempts: -1},
		"max lost":     {MaxLost: 1_000_001},
		"retain count": {RetainCount: 1_000_001},
		"every":        {Every: tenYears + 1},
		"priority -1":  {Priority: -1},
		"priority 9":   {Priority: events.MaxPriority + 1},
		"existing 2":   {Existing: events.RunAgain + 1},
	} {
		if _, err := p.Complete(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s out of range: Complete = %v", name, err)
		}
	}
	limits := events.Policy{Timeout: tenYears, LostDelay: tenYears, Backoff: events.Backoff{Base: tenYears, Max: tenYears}, Retain: tenYears,
		MaxAttempts: 1_000_000, MaxLost: 1_000_000, RetainCount: 1_000_000, Priority: events.MaxPriority, Existing: events.RunAgain, Every: tenYears}
	if got, err := limits.Complete(); err != nil || got != limits {
		t.Errorf("every field at its limit: %+v, %v", got, err)
	}
}

func TestPolicy_CompleteNeverTurnsAShortTimeIntoNone(t *testing.T) {
	got, err := events.Policy{Timeout: time.Nanosecond, LostDelay: 1_000_001, Retain: time.Microsecond, Every: 1}.Complete()
	if err != nil || got.Timeout != time.Millisecond || got.LostDelay != 2*time.Millisecond || got.Retain != time.Millisecond || got.Every != time.Millisecond {
		t.Errorf("Complete = %+v, %v; want times rounded up to milliseconds", got, err)
	}
}

func TestPolicy_CompleteIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.Timeout += time.Duration(rapid.IntRange(-999_999, 0).Draw(t, "short of a millisecond"))
		p.Retain += time.Duration(rapid.IntRange(-999_999, 0).Draw(t, "short of a millisecond"))
		once, err := p.Complete()
		if err != nil {
			return
		}
		if twice, err := once.Complete(); err != nil || twice != once {
			t.Fatalf("completed %+v, completed again %+v, %v", once, twice, err)
		}
	})
}

func TestBackoff_DelayDoublesUpToMax(t *testing.T) {
	b := events.Backoff{Base: time.Second, Max: time.Minute}
	for _, row := range []struct {
		failures int
		limit    time.Duration
	}{{1, time.Second}, {2, 2 * time.Second}, {3, 4 * time.Second}, {6, 32 * time.Second}, {7, time.Minute}, {8, time.Minute},
		{1_000_000, time.Minute}, {math.MaxInt, time.Minute}} {
		if got := b.Delay(row.failures, 0); got != 0 {
			t.Errorf("after %d failures, random 0: %s, want 0", row.failures, got)
		}
		if got := b.Delay(row.failures, 0.5); got != row.limit/2 {
			t.Errorf("after %d failures, random 0.5: %s, want %s", row.failures, got, row.limit/2)
		}
	}
	if got := (events.Backoff{Base: time.Hour, Max: time.Minute}).Delay(1, 0.5); got != 30*time.Second {
		t.Errorf("base above max: %s, want half of max", got)
	}
}

func TestBackoff_DelayOfACompletePolicyStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := drawPolicy(t).Complete()
		if err != nil {
			t.Fatal(err)
		}
		failures := rapid.IntRange(1, math.MaxInt).Draw(t, "failures")
		random := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random")
		if got := p.Backoff.Delay(failures, random); got < 0 || got > p.Backoff.Max {
			t.Fatalf("after %d failures, random %v: %s, want 0 to %s", failures, random, got, p.Backoff.Max)
		}
	})
}

func TestPolicy_TheFirstLossWaitsForNothingAndFurtherOnesWaitLongerAndApart(t *testing.T) {
	p, err := events.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	steps := []time.Duration{4 * time.Second, 16 * time.Second, 64 * time.Second, 256 * time.Second, 1024 * time.Second, time.Hour, time.Hour}
	for i := range 1000 {
		id, started := events.TaskID(fmt.Sprint("task/", i)), events.RefOf(uint64(i+1), i)
		if got := p.LostWait(1, id, started); got != 0 {
			t.Fatalf("after the first loss %s waits for %s", id, got)
		}
		for at, step := range steps {
			got := p.LostWait(at+2, id, started)
			if got < step/2 || got > step || got != p.LostWait(at+2, id, started) {
				t.Fatalf("after loss %d %s waits for %s, want %s to %s, always the same", at+2, id, got, step/2, step)
			}
		}
	}
	apart := map[time.Duration]bool{}
	for i := range 100 {
		apart[p.LostWait(5, events.TaskID(fmt.Sprint("task/", i)), events.RefOf(7, 0)).Truncate(time.Second)] = true
		apart[p.LostWait(5, "task/1", events.RefOf(7, i)).Truncate(time.Second)] = true
	}
	if len(apart) < 80 {
		t.Errorf("200 waits between 128 s and 256 s fall into %d different seconds", len(apart))
	}
}

func TestPolicy_NoLossWaitsLongerThanAnHourOrTheFirstStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := drawPolicy(t).Complete()
		if err != nil {
			t.Fatal(err)
		}
		losses := rapid.IntRange(0, math.MaxInt).Draw(t, "losses")
		if got := p.LostWait(losses, "task", events.Ref(rapid.Uint64().Draw(t, "started"))); got < 0 || got > max(p.LostDelay, time.Hour) {
			t.Fatalf("after %d losses the wait is %s", losses, got)
		}
	})
}

func TestMilliseconds_LongTimesDoNotOverflow(t *testing.T) {
	for n, want := range map[int64]time.Duration{0: 0, 1500: 1500 * time.Millisecond, -1: -time.Millisecond,
		math.MaxInt64: math.MaxInt64 / 1_000_000 * time.Millisecond, math.MinInt64: -math.MaxInt64 / 1_000_000 * time.Millisecond} {
		if got := events.Milliseconds(n); got != want {
			t.Errorf("%d ms are %s, want %s", n, got, want)
		}
	}
}
