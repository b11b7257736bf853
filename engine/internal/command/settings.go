package command

import (
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/settings"
)

// Settings reads the settings of the cluster.
type Settings struct {
	Linear bool // the answer waits for a proof of ownership
}

func (*Settings) Op() uint64 { return opSettings }

func (*Settings) Shard(count int) int { return events.Settings.Shard(count) }

func (*Settings) Size() int { return 64 }

func (*Settings) Limits() error { return nil }

// EncodeSettings writes the answer to Settings.
func EncodeSettings(s *settings.State) []byte {
	var w wire.Writer
	s.Encode(&w)
	return w.B
}

// DecodeSettings reads what EncodeSettings writes.
func DecodeSettings(data []byte) (settings.State, error) {
	var s settings.State
	err := DecodeLenient(data, s.Decode)
	return s, err
}
