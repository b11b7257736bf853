package events

import "time"

// Limits of what one event may hold, each with its reason. Everything that reaches the journal has passed them.
const (
	// MaxIDBytes bounds a task id: ids stand in every event, answer and subject.
	MaxIDBytes = 128
	// MaxBehaviorBytes bounds a behavior id, which is also a token of NATS subjects.
	MaxBehaviorBytes = 48
	// MaxPayloadBytes bounds parameters, results and error texts, each: an entry with one of them still travels in
	// one etcd request and one NATS message.
	MaxPayloadBytes = 256 << 10
	// MaxNameBytes bounds what people type: principals, request ids, reasons, notes, error codes.
	MaxNameBytes = 256
	// MaxProperties bounds the properties of an error; their texts count towards MaxPayloadBytes.
	MaxProperties = 64
	// MaxPriority keeps priority*10^12 within an int64, for stores that sort by one number.
	MaxPriority = 9_223_371
	// MaxSchedules bounds the schedules of a shard, which its owner has in memory.
	MaxSchedules = 5000
	// MaxDelay bounds the time ahead at which a task may be scheduled, ten years: every point in time stays far from
	// overflow.
	MaxDelay = 10 * 365 * 24 * time.Hour
	// SealEntryBytes is the size at which an entry takes no further command: larger ones delay those behind them.
	SealEntryBytes = 256 << 10
	// MaxEntryBytes bounds an entry: an etcd request holds 1.5 MiB and a NATS message 1 MiB, with headers.
	MaxEntryBytes = 768 << 10
	// MaxEntryEvents is the largest count that the index part of a Ref can hold.
	MaxEntryEvents = 1 << indexBits
)
