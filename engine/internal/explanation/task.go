package explanation

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// OfRunning explains a task of which an attempt runs.
func OfRunning(t *projection.Task) string {
	text := fmt.Sprintf("%s runs on node %s (%s)", attempt(t, t.Failures+1), store.NodeName(t.Node), t.Node)
	if t.Cancelled {
		text += "; the task was cancelled" + asked(t) + ", and ends when the function returns"
	}
	if t.Suspended {
		text += "; " + suspended(t)
	}
	return text
}

// OfEnd explains a task that has ended.
func OfEnd(t *projection.Task) string {
	switch {
	case t.Error != nil && t.Error.Code == events.CodeCancelled:
		return "it was cancelled" + asked(t) + tail(t.Error.Message, t)
	case t.Error != nil:
		text := "it has ended with FAILURE: " + failed(t)
		text += cmp.Or(remedy(t), untried(t))
		if t.Wait != nil && t.Wait.Since != 0 {
			text += "; the attempt that was due next was cancelled" + asked(t) // a retry, or the first one of the next run
		}
		return text
	case t.Wait != nil && t.Wait.Since != 0:
		return "it has ended with " + t.Status.String() + "; its next run was cancelled" + asked(t)
	}
	return "it has ended with " + t.Status.String()
}

// remedy says what lets a work go on that its owner has ended; "" where the failure alone says enough.
func remedy(t *projection.Task) string {
	switch of := t.Error.Properties; {
	case t.Error.Code == events.CodeThreshold && of["counter"] != "":
		return "; work reset --thresholds lets it count anew, and retry lets it go on"
	case t.Error.Code == events.CodeStopped && of["rule"] != "":
		return "; work reset --thresholds lets its failures count anew, and retry lets it go on"
	case t.Error.Code == events.CodeStopped && of["item"] != "":
		return "; retry lets it go on with that one"
	case t.Error.Code == events.CodeHolds && of["hold"] != "":
		const say = "; once task %s has processed some of them, or is deleted, retry lets it go on"
		return fmt.Sprintf(say, of["hold"])
	case t.Error.Code == events.CodeHolds:
		const say = "; once some of the tasks that hold them, %s and so on, have processed them, or are deleted, retry lets it go on"
		return fmt.Sprintf(say, events.HoldID(t.ID, 1))
	}
	return ""
}

// untried says of a failure that ended a run before its last attempt what lets the task run again; "" = it was the
// last.
func untried(t *projection.Task) string {
	if t.Error.Code == events.CodeLost || int(t.Failures) >= t.Kind.Policy.MaxAttempts {
		return ""
	}
	return "; it was not to be tried again: retry has it run once more"
}

// OfSuspended explains a task that somebody has suspended.
func OfSuspended(t *projection.Task) string {
	text := suspended(t)
	if t.Error != nil {
		text += "; " + failed(t)
	}
	return text
}

// suspended names the principal that suspended a task, and the reason, as far as they are known.
func suspended(t *projection.Task) string {
	if t.Wait == nil {
		return "an operator suspended the task"
	}
	text := cmp.Or(t.Wait.SuspendedBy, "an operator") + " suspended the task"
	if t.Wait.SuspendedFor != "" {
		text += ": " + Line(t.Wait.SuspendedFor)
	}
	return text
}

// OfWait explains a task whose time has not come.
func OfWait(t *projection.Task) string {
	due := t.Due.Time().Format(time.RFC3339)
	switch {
	case t.Error != nil && !t.RunEnded:
		return fmt.Sprintf("%s; the next one is due at %s", failed(t), due)
	case t.Error != nil:
		return fmt.Sprintf("its last run has failed: %s; the next run is due at %s", failed(t), due)
	case t.Wait != nil && t.Wait.Cause == events.KindLost:
		return fmt.Sprintf("the node of attempt %d has gone, which was loss %d of %d of its run; it is due at %s",
			t.Attempt, t.Lost, t.Kind.Policy.MaxLost, due)
	case t.Wait != nil && t.Wait.Cause == events.KindSnoozed:
		return fmt.Sprintf("attempt %d asked for a later one; it is due at %s", t.Attempt, due)
	}
	return "it is due at " + due
}

// attempt names an attempt of a run.
func attempt(t *projection.Task, number uint32) string {
	return fmt.Sprintf("attempt %d of %d", number, max(int(number), t.Kind.Policy.MaxAttempts))
}

// failed describes the last failure.
func failed(t *projection.Task) string {
	number := max(t.Failures, 1)
	if t.Error.Code == events.CodeLost || t.Error.Code == events.CodeDeadline {
		return t.Error.Code + ": " + Line(t.Error.Message)
	}
	return fmt.Sprintf("%s failed: %s: %s", attempt(t, number), t.Error.Code, Line(t.Error.Message))
}

// asked names the principal that cancelled a task, and the reason, as far as they are known.
func asked(t *projection.Task) (text string) {
	if t.Wait == nil {
		return ""
	}
	if t.Wait.By != "" {
		text = " by " + t.Wait.By
	}
	if t.Wait.Reason != "" {
		text += ": " + Line(t.Wait.Reason)
	}
	return text
}

// tail returns the part of a cancelled task's error that does not repeat the reason.
func tail(message string, t *projection.Task) string {
	reason := ""
	if t.Wait != nil {
		reason = t.Wait.Reason
	}
	if message = strings.TrimPrefix(message, cmp.Or(reason, "cancelled")); message == "" {
		return ""
	}
	return Line(message)
}

// Line returns the beginning of a text on one line, for people.
func Line(text string) string {
	const most = 160
	line := strings.Join(strings.Fields(text), " ")
	if cut := events.Head(line, most); cut != line {
		return cut + "..."
	}
	return line
}
