package pauses_test

import (
	"testing"

	"taskledger/engine/internal/pauses"
	"taskledger/projection"
	"taskledger/projection/settings"
)

// Nothing starts on a node before it knows what is paused: the owner of the settings tells its own without being asked.
func TestAtOwner_TellsTheSettingsWhenTheirShardIsServed(t *testing.T) {
	for shard, want := range map[int]int{3: 1, 4: 0} {
		learned := 0
		x := pauses.AtOwner(3, func(settings.State) { learned++ })(projection.NewShard(shard))
		x.Served()
		if learned != want {
			t.Errorf("shard %d: settings were told %d times, want %d", shard, learned, want)
		}
		if x.Perform(); learned != want {
			t.Errorf("shard %d: settings that did not change were told again", shard)
		}
	}
}
