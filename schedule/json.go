package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"taskledger/events"
)

// Form has the members of a Definition in JSON, for those who document or check it. Durations are texts such as "90s",
// times are RFC 3339.
type Form struct {
	Cron           string          `json:"cron,omitempty"`
	Timezone       string          `json:"timezone,omitempty"`
	Behavior       string          `json:"behavior"`
	Params         json.RawMessage `json:"params,omitempty"`
	Overlap        Overlap         `json:"overlap,omitempty"`
	Misfire        Misfire         `json:"misfire,omitempty"`
	Grace          *duration       `json:"grace,omitempty"`
	Jitter         *duration       `json:"jitter,omitempty"`
	Start          *time.Time      `json:"start,omitempty"`
	End            *time.Time      `json:"end,omitempty"`
	Priority       int64           `json:"priority,omitempty"`
	Timeout        *duration       `json:"timeout,omitempty"`
	Attempts       int             `json:"attempts,omitempty"`
	Keep           *int            `json:"keep,omitempty"`
	PauseOnFailure bool            `json:"pause_on_failure,omitempty"`
}

// duration is a time.Duration as JSON has it.
type duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	is, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q, want a text such as 90s or 1h30m", events.Head(string(text), 40))
	}
	*d = duration(is)
	return nil
}

// MarshalJSON writes the definition with the members cron, timezone, behavior, params, overlap, misfire, grace, jitter,
// start, end, priority, timeout, attempts, keep and pause_on_failure. A grace or keep of 0 is none at all.
func (d Definition) MarshalJSON() ([]byte, error) {
	f := Form{
		Cron:           d.Cron,
		Timezone:       d.Timezone,
		Behavior:       d.Behavior,
		Params:         d.Params,
		Overlap:        d.Overlap,
		Misfire:        d.Misfire,
		Grace:          durationOf(max(d.Grace, 0), d.Grace != 0),
		Jitter:         durationOf(d.Jitter, d.Jitter != 0),
		Start:          timeOf(d.Start),
		End:            timeOf(d.End),
		Priority:       d.Priority,
		Timeout:        durationOf(d.Timeout, d.Timeout != 0),
		Attempts:       d.Attempts,
		PauseOnFailure: d.PauseOnFailure,
	}
	if d.Keep != 0 {
		keep := max(d.Keep, 0)
		f.Keep = &keep
	}
	return json.Marshal(f)
}

func durationOf(d time.Duration, there bool) *duration {
	if !there {
		return nil
	}
	is := duration(d)
	return &is
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// UnmarshalJSON reads what MarshalJSON writes. It refuses members that a definition does not have.
func (d *Definition) UnmarshalJSON(data []byte) error {
	var f Form
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(&f); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one definition")
	}
	*d = f.Definition()
	return nil
}

// Definition returns the definition that was read.
func (f *Form) Definition() Definition {
	d := Definition{
		Cron:           f.Cron,
		Timezone:       f.Timezone,
		Behavior:       f.Behavior,
		Params:         f.Params,
		Overlap:        f.Overlap,
		Misfire:        f.Misfire,
		Grace:          none(f.Grace),
		Priority:       f.Priority,
		Attempts:       f.Attempts,
		PauseOnFailure: f.PauseOnFailure,
	}
	if f.Jitter != nil {
		d.Jitter = time.Duration(*f.Jitter)
	}
	if f.Timeout != nil {
		d.Timeout = time.Duration(*f.Timeout)
	}
	if f.Start != nil {
		d.Start = *f.Start
	}
	if f.End != nil {
		d.End = *f.End
	}
	if f.Keep != nil {
		if d.Keep = *f.Keep; d.Keep == 0 {
			d.Keep = -1
		}
	}
	return d
}

// none returns a duration, of which 0 is none at all, and nil the default.
func none(d *duration) time.Duration {
	switch {
	case d == nil:
		return 0
	case *d == 0:
		return -1
	}
	return time.Duration(*d)
}
