package events

import (
	"strconv"
)

// Kind is the stored number of an event kind: never reused, never reordered.
type Kind uint8

// The kinds, in the order of a task's life; after KindDeleted in the order in which they came.
const (
	KindCreated Kind = 1 + iota
	KindStarted
	KindProgressed
	KindSucceeded
	KindFailed
	KindSnoozed
	KindLost
	KindReleased
	KindRescheduled
	KindMerged
	KindSuspended
	KindResumed
	KindCancelRequested
	KindDeleted
	KindJoined
	KindAcceptedLoss
	KindRecovered
	KindPaused
	KindUnpaused
	KindItemAdded
	KindItemReplaced
	KindItemRemoved
	KindStoreForgotten
	KindScheduleSet
	KindTicked
	KindSchedulePaused
	KindScheduleResumed
	KindBackfillSet
	KindBackfillEnded
	KindScheduleEnded
	KindScheduleDefined
	KindWorkPlanned
	KindPartitionStarted
	KindPartitionEnded
	KindBucketsMoved
	KindPermitsGranted
	KindWorkReset
	KindTokenMoved
	KindChangeHeld
	KindHoldMoved
	KindDescribed
	kindEnd
)

// kinds has each kind by its number.
var kinds = [kindEnd]struct {
	name  string
	of    Record
	empty func() Body // makes a body without fields
}{
	KindCreated:          {"Created", OfTask, empty[Created]},
	KindStarted:          {"Started", OfTask, empty[Started]},
	KindProgressed:       {"Progressed", OfTask, empty[Progressed]},
	KindSucceeded:        {"Succeeded", OfTask, empty[Succeeded]},
	KindFailed:           {"Failed", OfTask, empty[Failed]},
	KindSnoozed:          {"Snoozed", OfTask, empty[Snoozed]},
	KindLost:             {"Lost", OfTask, empty[Lost]},
	KindReleased:         {"Released", OfTask, empty[Released]},
	KindRescheduled:      {"Rescheduled", OfTask, empty[Rescheduled]},
	KindMerged:           {"Merged", OfTask, empty[Merged]},
	KindSuspended:        {"Suspended", OfTask, empty[Suspended]},
	KindResumed:          {"Resumed", OfTask, empty[Resumed]},
	KindCancelRequested:  {"CancelRequested", OfTask, empty[CancelRequested]},
	KindDeleted:          {"Deleted", OfTask, empty[Deleted]},
	KindJoined:           {"Joined", OfTask, empty[Joined]},
	KindAcceptedLoss:     {"AcceptedLoss", OfJournal, empty[AcceptedLoss]},
	KindRecovered:        {"Recovered", OfJournal, empty[Recovered]},
	KindPaused:           {"Paused", OfSettings, empty[Paused]},
	KindUnpaused:         {"Unpaused", OfSettings, empty[Unpaused]},
	KindItemAdded:        {"ItemAdded", OfItem, empty[ItemAdded]},
	KindItemReplaced:     {"ItemReplaced", OfItem, empty[ItemReplaced]},
	KindItemRemoved:      {"ItemRemoved", OfItem, empty[ItemRemoved]},
	KindStoreForgotten:   {"StoreForgotten", OfForgotten, empty[StoreForgotten]},
	KindScheduleSet:      {"ScheduleSet", OfSchedule, empty[ScheduleSet]},
	KindTicked:           {"Ticked", OfSchedule, empty[Ticked]},
	KindSchedulePaused:   {"SchedulePaused", OfSchedule, empty[SchedulePaused]},
	KindScheduleResumed:  {"ScheduleResumed", OfSchedule, empty[ScheduleResumed]},
	KindBackfillSet:      {"BackfillSet", OfSchedule, empty[BackfillSet]},
	KindBackfillEnded:    {"BackfillEnded", OfSchedule, empty[BackfillEnded]},
	KindScheduleEnded:    {"ScheduleEnded", OfSchedule, empty[ScheduleEnded]},
	KindScheduleDefined:  {"ScheduleDefined", OfSchedule, empty[ScheduleDefined]},
	KindWorkPlanned:      {"WorkPlanned", OfTask, empty[WorkPlanned]},
	KindPartitionStarted: {"PartitionStarted", OfTask, empty[PartitionStarted]},
	KindPartitionEnded:   {"PartitionEnded", OfTask, empty[PartitionEnded]},
	KindBucketsMoved:     {"BucketsMoved", OfTask, empty[BucketsMoved]},
	KindPermitsGranted:   {"PermitsGranted", OfTask, empty[PermitsGranted]},
	KindWorkReset:        {"WorkReset", OfTask, empty[WorkReset]},
	KindTokenMoved:       {"TokenMoved", OfTask, empty[TokenMoved]},
	KindChangeHeld:       {"ChangeHeld", OfTask, empty[ChangeHeld]},
	KindHoldMoved:        {"HoldMoved", OfTask, empty[HoldMoved]},
	KindDescribed:        {"Described", OfTask, empty[Described]},
}

func empty[T any, P interface {
	*T
	Body
}]() Body {
	return P(new(T))
}

// newBody returns an empty body of the kind, nil for an unknown one.
func newBody(k Kind) Body {
	if k == 0 || k >= kindEnd {
		return nil
	}
	return kinds[k].empty()
}

// Record returns what events of the kind are of.
func (k Kind) Record() Record {
	if k >= kindEnd {
		return OfTask
	}
	return kinds[k].of
}

// Kinds returns every kind in stored order.
func Kinds() []Kind {
	all := make([]Kind, 0, kindEnd-1)
	for k := KindCreated; k < kindEnd; k++ {
		all = append(all, k)
	}
	return all
}

// String returns the name of the body's type.
func (k Kind) String() string {
	if k == 0 || k >= kindEnd {
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kinds[k].name
}

// MarshalText is String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
