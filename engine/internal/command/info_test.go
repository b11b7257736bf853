package command_test

import (
	"errors"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
)

func TestShardReport_ThatNoOwnerMakesIsRefused(t *testing.T) {
	hash := make([]byte, len(events.Hash{}))
	for what, r := range map[string]command.ShardReport{
		"hash cut short": {Hash: hash[1:]}, "digest too long": {Hash: hash, Digest: append(hash, 0)},
		"entries and no hash": {Entries: 1}, "epoch below zero": {Hash: hash, Epoch: -1}, "tasks below zero": {Hash: hash, Tasks: -1},
		"live below zero": {Hash: hash, Live: -1}, "ready below zero": {Hash: hash, Ready: -1}, "refused below zero": {Hash: hash, Refused: -1},
		"shards below zero": {Hash: hash, Shards: -1}, "overdue below zero": {Hash: hash, Needs: command.ShardNeeds{Overdue: -1}},
		"waiting below zero": {Hash: hash, Waits: command.ShardWaits{Tasks: -1}},
	} {
		if _, err := command.ReadMessage[command.ShardReport](message.Encode(r)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, r := range map[string]command.ShardReport{
		"served": {Entries: 1, Hash: hash, Digest: hash}, "not served": {Problem: "quarantined"}, "not served, with entries": {Entries: 1, Problem: "quarantined"},
	} {
		if _, err := command.ReadMessage[command.ShardReport](message.Encode(r)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
