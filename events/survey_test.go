package events_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"taskledger/events"
	"taskledger/internal/testkit"
)

func survey(data []byte) (e *events.Entry, tasks []events.TaskID, err error) {
	e, err = events.Survey(data, func(task []byte) { tasks = append(tasks, events.TaskID(task)) })
	return e, tasks, err
}

func TestSurvey_TellsWhatDecodeDoesAndWhoseTheEventsAre(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	want, err := events.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	got, tasks, err := survey(data)
	if err != nil {
		t.Fatal(err)
	}
	var whose []events.TaskID
	for i := range want.Events {
		whose = append(whose, want.Events[i].Task)
	}
	want.Events = nil
	if !reflect.DeepEqual(got, want) || !slices.Equal(tasks, whose) {
		t.Errorf("got %+v of %v, want %+v of %v", got, tasks, want, whose)
	}
}

func TestSurvey_DetectsEveryFlippedBitAndEveryCut(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	damaged := func(data []byte, what string, at int) {
		if e, _, err := survey(data); e != nil || !errors.Is(err, events.ErrDamaged) {
			t.Fatalf("%s %d: got %v, %v; want an error that wraps ErrDamaged", what, at, e, err)
		}
	}
	for i := range 8 * len(data) {
		data[i/8] ^= 1 << (i % 8)
		damaged(data, "bit", i)
		data[i/8] ^= 1 << (i % 8)
	}
	for n := range data {
		damaged(data[:n], "cut to", n)
	}
}

func TestSurvey_BombsCostLittle(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()[:3]...)
	testkit.CheckBombs(t, data, func(b []byte) error {
		_, _, err := survey(b)
		return err
	})
}
