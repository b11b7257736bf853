package engine

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/store"
)

// A lane is a stream of numbered batches from a sender to a shard, of which one is under way at a time.
const (
	laneSubmit uint8 = iota // what users and operators ask
	laneWork                // what running attempts report; owners decide it first
	laneQuery               // reads; batches here never cause events
	laneOffer               // standing offers, which may wait in the owner
	laneCount
)

// Limits of batches. An entry takes whole batches, as long as it is below events.SealEntryBytes: with a batch of
// maxBatchBytes whose last command carries the largest payload it must stay below events.MaxEntryBytes.
const (
	maxBatchCommands = 2048
	maxBatchBytes    = 192 << 10 // a batch takes no further command beyond it
	maxAnswerBytes   = 512 << 10
	// maxReadBytes bounds the answers to a batch of questions. One alone is smaller: a task takes 520 KiB at most, and so much after
	// the first half of a page of 512.
	maxReadBytes = 896 << 10
	// answerBytes is at least what an answer takes besides its text and its data.
	answerBytes = 48
	// maxMessageBytes bounds what is decoded: an etcd request holds 1.5 MiB, a NATS message 1 MiB.
	maxMessageBytes = 1536 << 10
	// commandBytes is what a command takes besides its texts and payloads: encoded, or as an event and its answer.
	commandBytes = 192
)

// batch is what travels to an owner: commands that are decided in one entry, in order.
type batch struct {
	sender    string
	lane      uint8
	number    uint64
	made      events.Millis // by the sender's clock
	principal string
	commands  []command
}

func (b *batch) encode() []byte {
	w := scratch.Get().(*wire.Writer)
	defer scratch.Put(w)
	w.B = w.B[:0]
	w.Array(6)
	w.Text(b.sender)
	w.Uint(uint64(b.lane))
	w.Uint(b.number)
	w.Int(int64(b.made))
	w.Text(b.principal)
	w.Array(2 * len(b.commands))
	for _, c := range b.commands {
		encodeCommand(w, c)
	}
	return bytes.Clone(w.B)
}

// What users and operators ask has to reach its owner in time: whoever has recorded it and repeats it later, when its number is
// forgotten, shall not have it decided again. A number is known for projection.KeepSenders after its last use, so the two together
// must be less; and maxBatchAge is longer than giveUp by what the clock of an honest sender may be behind.
const (
	maxBatchAge   = 45 * time.Minute
	maxBatchAhead = 10 * time.Minute
)

// untimely refuses a batch that is too old, or comes from too far ahead, by the owner's clock. Batches of the other lanes change
// nothing twice, whatever is known of their numbers: work names its attempt, a roll call its owner, and an offer is closed by its
// node. Those that settle others only record a number.
func (b *batch) untimely(now events.Millis) (why answer, refuse bool) {
	age := now - b.made
	if b.lane != laneSubmit || age <= events.Millis(maxBatchAge.Milliseconds()) && age >= -events.Millis(maxBatchAhead.Milliseconds()) {
		return answer{}, false
	}
	return refused(answerClock, "asked at %s by the caller's clock, which is %s by that of the shard's owner",
		b.made.Time().UTC().Format(time.RFC3339), now.Time().UTC().Format(time.RFC3339)), true
}

// scratch holds writers for what is encoded first and copied in its size then.
var scratch = sync.Pool{New: func() any { return new(wire.Writer) }}

// scanned returns a reader of what came from outside, once decoding it is known to cost no more than a small multiple of it.
func scanned(data []byte) (*wire.Reader, error) {
	if len(data) > maxMessageBytes {
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", wire.ErrMalformed, len(data), maxMessageBytes)
	}
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	return wire.NewReader(data), nil
}

// readMessage reads what message.Encode made, if it comes from outside.
func readMessage[T any](data []byte) (v T, err error) {
	err = message.Decode(data, maxMessageBytes, &v)
	return v, err
}

func decodeBatch(data []byte) (*batch, error) {
	r, err := scanned(data)
	if err != nil {
		return nil, err
	}
	if fields := r.Array(); fields == 5 {
		r.Fail("batch of an earlier release, which does not say when it was made")
	} else if fields != 6 {
		r.Fail("batch of %d fields", fields)
	}
	b := &batch{sender: r.Text()}
	lane := r.Uint()
	b.lane, b.number, b.made, b.principal = uint8(lane), r.Uint(), events.Millis(r.Int()), r.Text()
	n := r.Array()
	if lane >= uint64(laneCount) || len(b.principal) > events.MaxNameBytes || b.number == 0 || b.sender == "" || n == 0 || n%2 != 0 || n > 2*maxBatchCommands {
		r.Fail("batch %d of lane %d from %q with %d commands", b.number, lane, b.sender, n/2)
		return nil, r.Err()
	}
	b.commands = make([]command, 0, n/2)
	var outcomes []completeCommand // they come in hundreds: one piece of memory for all
	for left := n / 2; left > 0; left-- {
		op := r.Uint()
		var c command
		if op == (*completeCommand).op(nil) {
			if len(outcomes) == 0 {
				outcomes = make([]completeCommand, left)
			}
			c, outcomes = &outcomes[0], outcomes[1:]
		} else if c = newCommand(op); c == nil {
			return nil, fmt.Errorf("%w: command %d is unknown", wire.ErrMalformed, op)
		}
		decodeCommand(r, c)
		b.commands = append(b.commands, c)
	}
	return b, r.Close()
}

// encodeAnswerMessage writes what goes back to the sender of a batch; nil answers acknowledge that it has come. recorded
// tells that they are in the journal.
func encodeAnswerMessage(shard int, b *batch, answers []answer, recorded bool) []byte {
	var body []byte
	if answers != nil {
		body = encodeAnswers(answers)
	}
	w := wire.Writer{B: make([]byte, 0, len(body)+32)}
	w.Array(5)
	w.Uint(uint64(shard))
	w.Uint(uint64(b.lane))
	w.Uint(b.number)
	w.Bytes(body)
	w.Bool(recorded)
	return w.B
}

func decodeAnswerMessage(data []byte) (shard int, laneID uint8, number uint64, answers []answer, recorded bool, err error) {
	r, err := scanned(data)
	if err != nil {
		return 0, 0, 0, nil, false, err
	}
	r.ArrayOf(5)
	shard64, lane64 := r.Uint(), r.Uint()
	number = r.Uint()
	body := r.View()
	recorded = r.Bool()
	if shard64 >= store.MaxShards || lane64 >= uint64(laneCount) {
		r.Fail("answer from shard %d, lane %d", shard64, lane64)
	}
	shard, laneID = int(shard64), uint8(lane64)
	if err := r.Close(); err != nil {
		return 0, 0, 0, nil, false, err
	}
	if body != nil {
		answers, err = decodeAnswers(body)
	}
	return shard, laneID, number, answers, recorded, err
}
