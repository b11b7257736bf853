package view

import (
	"taskledger/events"
	"taskledger/schedule"
)

// The words for what became of ticks, and why they have no run.
var (
	tickDecisions = []string{
		events.TickCreated:   "created",
		events.TickSkipped:   "skipped",
		events.TickMissed:    "missed",
		events.TickCorrected: "corrected",
		events.TickFilled:    "filled",
		events.TickNotFilled: "not filled",
	}
	tickCauses = []string{
		events.TickOverlap: "a run had not ended",
		events.TickTaken:   "there is a task of the run's id",
		events.TickTooMany: "too many runs have not ended",
		events.TickLate:    "too late",
		events.TickOld:     "a newer tick was undecided",
		events.TickPaused:  "paused",
	}
)

// The words for what made a run whose id does not tell, and for such names.
var (
	runOrigins = []string{
		0:                "",
		events.RunOfTick: "tick",
		events.RunByHand: "by hand",
		events.RunOfFill: "backfill",
	}
	runNames = []string{events.NamesByOrigin: "", events.NamesByUUID: "uuid"}
)

// ofSchedule returns the content of an event of a schedule, nil for any other.
func ofSchedule(of events.Body) any {
	if b := events.DefinitionIn(of); b != nil {
		o := withNext(object{"definition": schedule.Of(&b.Plan, b.Params), "policy": policy(b.Plan.Policy)}, b.Next)
		reason := ""
		if later, is := of.(*events.ScheduleDefined); is {
			reason = later.Reason
		}
		return withSome(o, map[string]string{"code": b.Code, "names": runNames[b.Plan.Names], "reason": reason})
	}
	switch b := of.(type) {
	case *events.Ticked:
		o := withNext(object{"decision": tickDecisions[b.Decision]}, b.Next)
		if b.Decision != events.TickCorrected {
			o["from"], o["to"] = b.From, b.To
		}
		return withSome(o, map[string]string{"cause": tickCauses[b.Cause], "run": string(b.Run)})
	case *events.SchedulePaused:
		return withSome(object{"reason": b.Reason}, map[string]string{"failed": string(b.Failed)})
	case *events.ScheduleResumed, *events.ScheduleEnded:
		return object{}
	case *events.BackfillSet:
		return object{"from": b.From, "to": b.To, "ticks": b.Ticks}
	case *events.BackfillEnded:
		return object{"reason": b.Reason}
	}
	return nil
}

// withSome adds the texts that are not empty.
func withSome(o object, texts map[string]string) object {
	for name, is := range texts {
		if is != "" {
			o[name] = is
		}
	}
	return o
}
