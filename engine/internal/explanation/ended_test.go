package explanation_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/explanation"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// Whoever suspended a task has not cancelled the retry that it does not get.
func TestOfEnd_SaysThatARetryWasCancelledOnlyWhereOneWas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since events.Millis
		says  bool
	}{"suspended, and failed for good": {0, false}, "its retry was cancelled": {7, true}} {
		task := &projection.Task{
			Status: task.Failure,
			Flags:  projection.Flags{Suspended: true},
			Kind:   &projection.Kind{},
			Error:  &events.Error{Code: "boom"},
			Wait:   &projection.Wait{Since: c.since, By: "olga", Reason: "the disk is full"},
		}
		if text := explanation.OfEnd(task); strings.Contains(text, "cancelled by olga") != c.says {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// What was due after a failure for good was the next run, which the task does not tell from a retry any more.
func TestOfEnd_PromisesNoRetryThatThereMayNotHaveBeen(t *testing.T) {
	t.Parallel()
	task := &projection.Task{
		Status: task.Failure,
		Flags:  projection.Flags{RunEnded: true},
		Kind:   &projection.Kind{Policy: events.Policy{MaxAttempts: 3, Every: 1}},
		Error:  &events.Error{Code: "boom"},
		Wait:   &projection.Wait{Since: 7, By: "olga"},
	}
	if text := explanation.OfEnd(task); !strings.HasSuffix(text, "; the attempt that was due next was cancelled by olga") {
		t.Errorf("%q", text)
	}
}

// One may have cancelled it, and another one suspended.
func TestExplanations_TellWhoCancelledAndWhoSuspended(t *testing.T) {
	t.Parallel()
	task := &projection.Task{
		Status:      task.Running,
		LastAttempt: projection.LastAttempt{Node: "n-1.1"},
		Flags:       projection.Flags{Suspended: true, Cancelled: true},
		Kind:        &projection.Kind{},
		Wait: &projection.Wait{
			SuspendedAt:  7,
			By:           "ada",
			Reason:       "wrong customer",
			SuspendedBy:  "olga",
			SuspendedFor: "the disk is full",
		},
	}
	running, kept := explanation.OfRunning(task), explanation.OfSuspended(task)
	for _, want := range []string{"cancelled by ada: wrong customer", "olga suspended the task: the disk is full"} {
		if !strings.Contains(running, want) {
			t.Errorf("%q does not say %q", running, want)
		}
	}
	if kept != "olga suspended the task: the disk is full" {
		t.Errorf("%q", kept)
	}
}

// A failure by which an owner has ended a work says how it goes on.
func TestOfEnd_SaysWhatLetsAWorkGoOnThatItsOwnerHasEnded(t *testing.T) {
	t.Parallel()
	for want, is := range map[string]*events.Error{
		"holds: key \"k\" is full; once task a/p.h3 has processed some of them, or is deleted, retry lets it go on": {
			Code:       events.CodeHolds,
			Message:    `key "k" is full`,
			Properties: map[string]string{"partition": "all", "hold": "a/p.h3"},
		},
		"holds: 10,000; once some of the tasks that hold them, a/p.h1 and so on, have processed them, or are deleted, retry lets it go on": {
			Code:       events.CodeHolds,
			Message:    "10,000",
			Properties: map[string]string{"partition": "all"},
		},
		"; work reset --thresholds lets it count anew, and retry lets it go on": {
			Code:       events.CodeThreshold,
			Properties: map[string]string{"counter": "deletes"},
		},
		"; work reset --thresholds lets its failures count anew, and retry lets it go on": {
			Code:       events.CodeStopped,
			Properties: map[string]string{"rule": "1"},
		},
		"; retry lets it go on with that one": {
			Code:       events.CodeStopped,
			Properties: map[string]string{"item": "k"},
		},
	} {
		task := &projection.Task{
			ID:     "a/p",
			Status: task.Failure,
			Kind:   &projection.Kind{},
			Error:  is,
		}
		if text := explanation.OfEnd(task); !strings.HasSuffix(text, want) {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
