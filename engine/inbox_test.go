package engine

import (
	"slices"
	"testing"

	"taskledger/engine/internal/command"
)

func TestInbox_WhatDoesNotFitGoesBackInFront(t *testing.T) {
	in := newInbox()
	put := func(numbers ...uint64) (all []delivery) {
		for _, n := range numbers {
			all = append(all, delivery{Batch: &command.Batch{Number: n, Lane: command.LaneWork}})
		}
		return all
	}
	for _, d := range put(1, 2, 3) {
		in.put(d)
	}
	in.lose("n-1")
	first := in.take(&mail{})
	in.put(put(4)[0])
	in.putBack(command.LaneWork, first.lanes[command.LaneWork][1:])
	again := in.take(&first)
	var numbers []uint64
	for _, d := range again.lanes[command.LaneWork] {
		numbers = append(numbers, d.Number)
	}
	if !slices.Equal(numbers, []uint64{2, 3, 4}) || len(again.lost) != 0 {
		t.Errorf("batches %v, lost %v; want 2, 3, 4 and none", numbers, again.lost)
	}
	select {
	case <-in.wake:
	default:
		t.Error("the owner was not woken")
	}
}

func TestInbox_KeepsOneCopyOfABatchForEachWayItCame(t *testing.T) {
	in := newInbox()
	for range 3 {
		for _, letter := range []bool{false, true} {
			for number := range uint64(2) {
				in.put(delivery{Batch: &command.Batch{Sender: "a", Number: number + 1, Lane: command.LaneWork}, letter: letter})
			}
		}
	}
	in.put(delivery{Batch: &command.Batch{Sender: "b", Number: 1, Lane: command.LaneWork}})
	if got := len(in.take(&mail{}).lanes[command.LaneWork]); got != 5 {
		t.Errorf("%d batches wait, want 5", got)
	}
}

// The answer to a letter is refused when a later one of the same batch has replaced it.
func TestInbox_AnswersTheLatestCopyOfALetter(t *testing.T) {
	in := newInbox()
	latest := 0
	for i := range 3 {
		in.put(delivery{Batch: &command.Batch{Sender: "a", Number: 1, Lane: command.LaneWork}, letter: true,
			reply: func(*command.Batch, []command.Answer, bool) { latest = i }})
	}
	for _, d := range in.take(&mail{}).lanes[command.LaneWork] {
		d.reply(d.Batch, nil, false)
	}
	if latest != 2 {
		t.Errorf("copy %d is answered, want 2", latest)
	}
}

// While the store is full the owner takes no turn, and the node is seen to be gone again and again.
func TestInbox_NotesALostNodeOnce(t *testing.T) {
	in := newInbox()
	for _, node := range []string{"n-1", "n-2", "n-1"} {
		in.lose(node)
	}
	if lost := in.take(&mail{}).lost; !slices.Equal(lost, []string{"n-1", "n-2"}) {
		t.Errorf("lost %v, want each node once", lost)
	}
}
