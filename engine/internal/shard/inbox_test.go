package shard_test

import (
	"slices"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
)

func TestInbox_WhatDoesNotFitGoesBackInFront(t *testing.T) {
	in := shard.NewInbox()
	put := func(numbers ...uint64) (all []shard.Delivery) {
		for _, n := range numbers {
			all = append(all, shard.Delivery{Batch: &command.Batch{Number: n, Lane: command.LaneWork}})
		}
		return all
	}
	for _, d := range put(1, 2, 3) {
		in.Deliver(d)
	}
	in.Lose("n-1")
	first := in.Take(&shard.Mail{})
	in.Deliver(put(4)[0])
	in.PutBack(command.LaneWork, first.Lanes[command.LaneWork][1:])
	again := in.Take(&first)
	var numbers []uint64
	for _, d := range again.Lanes[command.LaneWork] {
		numbers = append(numbers, d.Number)
	}
	if !slices.Equal(numbers, []uint64{2, 3, 4}) || len(again.Lost) != 0 {
		t.Errorf("batches %v, lost %v; want 2, 3, 4 and none", numbers, again.Lost)
	}
	select {
	case <-in.Woken():
	default:
		t.Error("the owner was not woken")
	}
}

func TestInbox_KeepsOneCopyOfABatchForEachWayItCame(t *testing.T) {
	in := shard.NewInbox()
	for range 3 {
		for _, letter := range []bool{false, true} {
			for number := range uint64(2) {
				in.Deliver(shard.Delivery{Batch: &command.Batch{Sender: "a", Number: number + 1, Lane: command.LaneWork}, Stored: letter})
			}
		}
	}
	in.Deliver(shard.Delivery{Batch: &command.Batch{Sender: "b", Number: 1, Lane: command.LaneWork}})
	if got := len(in.Take(&shard.Mail{}).Lanes[command.LaneWork]); got != 5 {
		t.Errorf("%d batches wait, want 5", got)
	}
}

// The answer to a letter is refused when a later one of the same batch has replaced it.
func TestInbox_AnswersTheLatestCopyOfALetter(t *testing.T) {
	in := shard.NewInbox()
	latest := 0
	for i := range 3 {
		in.Deliver(shard.Delivery{Batch: &command.Batch{Sender: "a", Number: 1, Lane: command.LaneWork}, Stored: true,
			Reply: func(*command.Batch, []command.Answer, bool) { latest = i }})
	}
	for _, d := range in.Take(&shard.Mail{}).Lanes[command.LaneWork] {
		d.Reply(d.Batch, nil, false)
	}
	if latest != 2 {
		t.Errorf("copy %d is answered, want 2", latest)
	}
}

// While the store is full the owner takes no turn, and the node is seen to be gone again and again.
func TestInbox_NotesALostNodeOnce(t *testing.T) {
	in := shard.NewInbox()
	for _, node := range []string{"n-1", "n-2", "n-1"} {
		in.Lose(node)
	}
	if lost := in.Take(&shard.Mail{}).Lost; !slices.Equal(lost, []string{"n-1", "n-2"}) {
		t.Errorf("lost %v, want each node once", lost)
	}
}
