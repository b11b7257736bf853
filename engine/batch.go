package engine

import (
	"bytes"
	"fmt"
	"sync"

	"taskledger/events"
	"taskledger/internal/wire"
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
	principal string
	commands  []command
}

func (b *batch) encode() []byte {
	w := scratch.Get().(*wire.Writer)
	defer scratch.Put(w)
	w.B = w.B[:0]
	w.Array(5)
	w.Text(b.sender)
	w.Uint(uint64(b.lane))
	w.Uint(b.number)
	w.Text(b.principal)
	w.Array(2 * len(b.commands))
	for _, c := range b.commands {
		w.Uint(c.op())
		c.encode(w)
	}
	return bytes.Clone(w.B)
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

func decodeBatch(data []byte) (*batch, error) {
	r, err := scanned(data)
	if err != nil {
		return nil, err
	}
	r.ArrayOf(5)
	b := &batch{sender: r.Text()}
	lane := r.Uint()
	b.lane, b.number, b.principal = uint8(lane), r.Uint(), r.Text()
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
		c.decode(r)
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
	if shard64 >= maxShards || lane64 >= uint64(laneCount) {
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
