package runid_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"taskledger/events"
	"taskledger/internal/runid"
)

// These ids are stored: who computes others decides a tick twice, or runs a repeated request twice.
func TestIDs_StayWhatTheyAre(t *testing.T) {
	for want, got := range map[events.TaskID]events.TaskID{
		"a_b/813fd1d0-e9cc-5537-9127-b1b5cb6e3234": runid.OfTick("a_b", 1_615_414_412_456),
		"a_b/9d948e84-22fd-5929-9e36-a99737e305a2": runid.OfHand("a_b", "k1"),
		"a_b/a776e07d-97a3-5759-95d1-6b5e964e2a5f": runid.OfFill("a_b", 1_615_414_412_456, 0),
		"a_b/b7020bd6-ded5-52e6-b93d-eb3edf050302": runid.OfFill("a_b", 1_615_414_412_456, 1_615_414_500_000),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestIDs_AreUUIDsOfVersion5OfTheSchedule(t *testing.T) {
	name := strings.Repeat("s", events.MaxScheduleBytes)
	for _, id := range []events.TaskID{runid.OfTick(name, events.MaxTick), runid.OfHand(name, ""), runid.OfFill(name, 1, 2)} {
		_, text, _ := strings.Cut(string(id), "/")
		if is, err := uuid.Parse(text); err != nil || is.Version() != 5 || id.Affinity() != name || id.Validate() != nil ||
			events.ScheduledPrefix(id) != "" {
			t.Errorf("%s: version %d, %v", id, is.Version(), err)
		}
	}
}

func TestIDs_DifferWhereTheirNamesDo(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []events.TaskID{
		runid.OfTick("a_b", 1), runid.OfTick("a_b", 11), runid.OfTick("a_c", 1), runid.OfHand("a_b", "1"),
		runid.OfHand("a_b", ""), runid.OfHand("a_c", "1"), runid.OfFill("a_b", 1, 0), runid.OfFill("a_b", 1, 1),
		runid.OfFill("a_b", 11, 0), runid.OfFill("a_c", 1, 0),
	} {
		_, text, _ := strings.Cut(string(id), "/")
		if seen[text] {
			t.Errorf("%s is there twice", id)
		}
		seen[text] = true
	}
}
