package engine

import (
	"slices"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/projection"
	"taskledger/store"
)

// A write may still land that was under way when the damage was met. While the quarantine cannot begin, what such a write may hold is not
// turned down, nor is a letter, whose answer needs room.
func TestQuarantine_WhileEtcdIsFullNothingIsTurnedDownThatMayBeDecided(t *testing.T) {
	b := newBench(t, -1)
	tried, posted, fresh := b.next("a", command.LaneSubmit, submitOf(Policy{})), b.next("b", command.LaneSubmit, submitOf(Policy{})), b.next("c", command.LaneSubmit, submitOf(Policy{}))
	b.own.remember(projection.SenderLane{Sender: "a", Lane: command.LaneSubmit}, tried.batch.Number, []command.Answer{{}})
	q := newQuarantine(b.m.place, b.own.ownership, b.own)
	why := "damaged"
	q.why.Store(&why)
	b.m.usage.Store(&store.Usage{Full: true})
	b.deliver(tried)
	b.post(posted)
	b.deliver(fresh)
	rest := q.refuse(t.Context(), b.own.inbox.take(&mail{}).lanes[command.LaneSubmit])
	b.m.tasks.Wait()
	if len(rest) != 2 || len(tried.got) != 0 || len(posted.got) != 0 {
		t.Errorf("%d wait, told %+v and %+v; want two, and nothing", len(rest), tried.got, posted.got)
	}
	if len(fresh.got) != 1 || fresh.got[0][0].Code != command.AnswerUnserved {
		t.Errorf("what no write can hold was told %+v", fresh.got)
	}
}

// Until it begins, a quarantine keeps the latest batch of each sender and way.
func TestLatest_KeepsOneForEachSenderAndWay(t *testing.T) {
	of := func(sender string, number uint64, letter bool) delivery {
		return delivery{Batch: &command.Batch{Sender: sender, Number: number}, letter: letter}
	}
	var all []delivery
	for _, d := range []delivery{of("a", 2, false), of("a", 1, false), of("a", 2, true), of("b", 7, false), of("a", 3, false), of("b", 7, false)} {
		all = latest(all, d)
	}
	var got []uint64
	for _, d := range all {
		got = append(got, d.Number)
	}
	if want := []uint64{3, 2, 7}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}
