package engine

import (
	"slices"
	"testing"
)

func TestInbox_WhatDoesNotFitGoesBackInFront(t *testing.T) {
	in := newInbox()
	put := func(numbers ...uint64) (all []delivery) {
		for _, n := range numbers {
			all = append(all, delivery{batch: &batch{number: n, lane: laneWork}})
		}
		return all
	}
	for _, d := range put(1, 2, 3) {
		in.put(d)
	}
	in.lose("n-1")
	first := in.take(&mail{})
	in.put(put(4)[0])
	in.putBack(laneWork, first.lanes[laneWork][1:])
	again := in.take(&first)
	var numbers []uint64
	for _, d := range again.lanes[laneWork] {
		numbers = append(numbers, d.number)
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
				in.put(delivery{batch: &batch{sender: "a", number: number + 1, lane: laneWork}, letter: letter})
			}
		}
	}
	in.put(delivery{batch: &batch{sender: "b", number: 1, lane: laneWork}})
	if got := len(in.take(&mail{}).lanes[laneWork]); got != 5 {
		t.Errorf("%d batches wait, want 5", got)
	}
}
