// Package runid names the runs of schedules by UUIDs, version 5: "SCHEDULE/UUID". The names are part of what is stored:
// by them a tick, or a request that is sent again, has the run that it had. The functions are pure.
package runid

import (
	"strconv"

	"github.com/google/uuid"

	"taskledger/events"
)

// The namespaces were drawn at random.
var (
	ticks = uuid.MustParse("52b52c5c-0b3a-47f3-a460-c28cd3089b62")
	hands = uuid.MustParse("27217618-7c42-4f06-b54c-20710f09cf92")
	fills = uuid.MustParse("570f3a5f-16d6-49e4-a1ea-c75ba017ed9d")
)

// OfTick returns the id of the run of a tick.
func OfTick(schedule string, tick events.Millis) events.TaskID {
	return named(ticks, schedule, decimal(tick))
}

// OfHand returns the id of a run that somebody asked for, by what tells it from others: as random as that is.
func OfHand(schedule, of string) events.TaskID { return named(hands, schedule, of) }

// OfFill returns the id of the run of a tick in a backfill. again tells when the backfill began, 0 for the first id
// that the run may have.
func OfFill(schedule string, tick, again events.Millis) events.TaskID {
	of := decimal(tick)
	if again != 0 {
		of += ":" + decimal(again)
	}
	return named(fills, schedule, of)
}

func decimal(at events.Millis) string { return strconv.FormatInt(int64(at), 10) }

// named hashes a text that no other two make: a schedule has no slash in its name.
func named(space uuid.UUID, schedule, of string) events.TaskID {
	id := uuid.NewSHA1(space, []byte(schedule+"/"+of))
	return events.TaskID(schedule + "/" + id.String())
}
