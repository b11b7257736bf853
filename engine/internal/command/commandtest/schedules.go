package commandtest

import (
	"math"
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/schedules"
	"taskledger/events"
)

var scheduleName = strings.Repeat("s", events.MaxScheduleBytes)

// Plan is the largest one of a schedule.
func Plan() events.SchedulePlan {
	return events.SchedulePlan{
		Cron:           strings.Repeat("c", events.MaxCronBytes),
		Zone:           strings.Repeat("z", events.MaxZoneBytes),
		Behavior:       behavior,
		Policy:         Policy(),
		Priority:       events.MaxPriority,
		Overlap:        events.OverlapReplace,
		Misfire:        events.MisfireAll,
		Grace:          events.Millis(long.Milliseconds()),
		Jitter:         events.Millis(long.Milliseconds()),
		Start:          events.MaxTick,
		End:            events.MaxTick,
		Keep:           events.MaxKeptRuns,
		PauseOnFailure: true,
	}
}

// scheduleForms is Largest for the commands of schedules; nil for any other.
func scheduleForms(op uint64) []command.Command {
	switch commands.Table.New(op).(type) {
	case *schedules.Set:
		plan := Plan()
		return []command.Command{&schedules.Set{
			Name:   scheduleName,
			Plan:   schedules.EncodePlan(&plan),
			Params: events.JSON([]byte(`"` + strings.Repeat("p", events.MaxScheduleParamBytes-2) + `"`)),
			Next:   int64(command.MaxTime) - 1,
			Offset: 48 * 60 * 60,
			Code:   strings.Repeat("c", events.MaxCodeBytes),
			Seen:   math.MaxUint64,
			Reason: name,
		}}
	case *schedules.Steer:
		return []command.Command{&schedules.Steer{
			Name:   scheduleName,
			Verb:   int64(schedules.Pause),
			Reason: name,
			Seen:   math.MaxUint64,
		}}
	case *schedules.Run:
		run := scheduleName + "/" + events.HandPrefix
		return []command.Command{&schedules.Run{
			Name: scheduleName,
			ID:   run + strings.Repeat("r", events.MaxIDBytes-len(run)),
			Seen: math.MaxUint64,

			Priority: events.MaxPriority,
		}}
	case *schedules.Backfill:
		return []command.Command{&schedules.Backfill{
			Name:  scheduleName,
			From:  int64(command.MaxTime) - 1,
			To:    int64(command.MaxTime) - 1,
			Ticks: events.MaxBackfill,
			Seen:  math.MaxUint64,
		}}
	case *schedules.Get:
		return []command.Command{&schedules.Get{Name: scheduleName, Linear: true}}
	case *schedules.List:
		return []command.Command{&schedules.List{
			After:    scheduleName,
			Limit:    schedules.MaxListed,
			Prefix:   scheduleName,
			Behavior: strings.Repeat("b", events.MaxBehaviorBytes),
			Paused:   true,
		}}
	}
	return nil
}
