package projection_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// sampleDescribed has a task that waits and one that has ended.
func sampleDescribed(t tb) *projection.Shard {
	j := newJournal(t)
	for _, id := range []events.TaskID{"waits", "ended"} {
		j.add(id, j.created())
		j.add(id, &events.Described{Tags: []string{"customer=ada", "nightly"}, Deadline: j.now.Add(time.Hour)})
	}
	j.add("ended", j.started("ended"))
	j.add("ended", &events.Succeeded{Run: 1})
	j.seal(0)
	return j.state
}

func TestGolden_DescribedTasksAreStoredAsEver(t *testing.T) {
	golden(t, "described", sampleDescribed(t))
}

func TestDescribed_DeadlineIsThatOfARunAndTagsStay(t *testing.T) {
	s := sampleDescribed(t)
	waits, ended := s.Task("waits"), s.Task("ended")
	if first, at := s.NextDeadline(); first != waits || at != waits.CreatedAt.Add(time.Hour) {
		t.Errorf("the next deadline is %d", at)
	}
	if ended.Deadline() != 0 || !slices.Equal(ended.Tags(), []string{"customer=ada", "nightly"}) {
		t.Errorf("after its end: deadline %d, tags %v", ended.Deadline(), ended.Tags())
	}
}

// A client of a release before there were descriptions passes over the end of a task that it is told.
func TestEncode_TellsTheDescriptionBehindTheRest(t *testing.T) {
	of := sampleDescribed(t).Task("waits")
	var w wire.Writer
	of.Encode(&w)
	r := wire.NewReader(w.B)
	got := projection.DecodeTask(r)
	if err := r.Close(); err != nil || got.Deadline() != of.Deadline() || !slices.Equal(got.Tags(), of.Tags()) {
		t.Errorf("read %+v, %v", got.About, err)
	}
	bare := *of
	bare.About = nil
	var before wire.Writer
	bare.Encode(&before)
	inner := func(w wire.Writer) string { return string(w.B[1:]) } // without the number of values
	if !strings.HasPrefix(inner(w), inner(before)) {
		t.Error("what comes before the description differs from a task without one")
	}
}
