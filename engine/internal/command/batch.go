package command

import (
	"bytes"
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/store"
)

// A lane is a stream of numbered batches from a sender to a shard, of which one is under way at a time.
const (
	LaneSubmit uint8 = iota // what users and operators ask
	LaneWork                // what running attempts report; owners decide it first
	LaneQuery               // reads; batches here never cause events
	LaneOffer               // standing offers, which may wait in the owner
	LaneCount
)

// Limits of batches. An entry takes whole batches, as long as it is below events.SealEntryBytes: with a batch of
// MaxBatchBytes whose last command carries the largest payload it must stay below events.MaxEntryBytes.
const (
	MaxBatchCommands = 2048
	MaxBatchBytes    = 192 << 10 // a batch takes no further command beyond it
	MaxAnswerBytes   = 512 << 10
	// MaxReadBytes bounds the answers to a batch of questions. One alone is smaller: a task takes 520 KiB at most, and so much after
	// the first half of a page of 512.
	MaxReadBytes = 896 << 10
	// answerBytes is at least what an answer takes besides its text and its data.
	answerBytes = 48
	// maxMessageBytes bounds what is decoded: an etcd request holds 1.5 MiB, a NATS message 1 MiB.
	maxMessageBytes = 1536 << 10
	// originBytes is at least what a batch takes in an entry besides its names and its commands.
	originBytes = 64
	// maxBatchSize bounds the size of a batch: it fits into an entry of its own. One that a sender makes is much smaller.
	maxBatchSize = events.MaxEntryBytes - 1024
	// commandBytes is what a command takes besides its texts and payloads: encoded, or as an event and its answer.
	commandBytes = 192
)

// Batch is what travels to an owner: commands that are decided in one entry, in order.
type Batch struct {
	Sender    string
	Lane      uint8
	Number    uint64
	Made      events.Millis // by the sender's clock
	Principal string
	Commands  []Command
	Asked     []Asked // whose commands they are, in order; none = the sender's own
}

func (b *Batch) Encode() []byte {
	w := wire.Scratch()
	defer w.Done()
	fields := 6
	if len(b.Asked) > 0 {
		fields++
	}
	w.Array(fields)
	w.Text(b.Sender)
	w.Uint(uint64(b.Lane))
	w.Uint(b.Number)
	w.Int(int64(b.Made))
	w.Text(b.Principal)
	w.Array(2 * len(b.Commands))
	for _, c := range b.Commands {
		Encode(w, c)
	}
	if len(b.Asked) > 0 {
		b.encodeAsked(w)
	}
	return bytes.Clone(w.B)
}

// What users and operators ask has to reach its owner in time: whoever has recorded it and repeats it later, when its number is
// no longer kept, shall not have it decided again. A number is known for projection.KeepSenders after its last use, so the two together
// must be less; and MaxBatchAge is longer than giveUp by what the clock of an honest sender may be behind.
const (
	MaxBatchAge   = 45 * time.Minute
	MaxBatchAhead = 10 * time.Minute
)

// size is at least what a batch and its answers take in an entry.
func (b *Batch) size() int {
	n := originBytes + len(b.Sender) + len(b.Principal)
	for i := range b.Asked {
		n += originBytes + b.Asked[i].Asker.Bytes()
	}
	for _, c := range b.Commands {
		n += c.Size()
	}
	return n
}

// Aging is a command that tells how long ago it was first asked, and is told for how long it has waited until its batch is made.
type Aging interface{ Waited(d time.Duration) }

// Untimely refuses a batch that is too old, or comes from too far ahead, by the owner's clock. Batches of the other lanes change
// nothing twice, whatever is known of their numbers: work names its attempt, a Reconcile its owner, and an offer is closed by its
// node. A barrier only records a number.
func (b *Batch) Untimely(now events.Millis) (why Answer, refuse bool) {
	age := now - b.Made
	if b.Lane != LaneSubmit || age <= events.Millis(MaxBatchAge.Milliseconds()) && age >= -events.Millis(MaxBatchAhead.Milliseconds()) {
		return Answer{}, false
	}
	return Refused(AnswerClock, "asked at %s by the caller's clock, which is %s by that of the shard's owner",
		b.Made.Time().UTC().Format(time.RFC3339), now.Time().UTC().Format(time.RFC3339)), true
}

// Scanned returns a reader of what came from outside, once decoding it is known to cost no more than a small multiple of it.
func Scanned(data []byte) (*wire.Reader, error) {
	if len(data) > maxMessageBytes {
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", wire.ErrMalformed, len(data), maxMessageBytes)
	}
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	return wire.NewReader(data), nil
}

// Told reads what tells something, from outside, and passes over the tails that it does not know.
func Told(data []byte, decode func(r *wire.Reader)) error {
	return wire.Told(data, func(data []byte) error {
		r, err := Scanned(data)
		if err != nil {
			return err
		}
		decode(r)
		return r.Close()
	})
}

// ReadMessage reads what message.Encode made, if it comes from outside and asks for something: a tail that is not known is refused.
func ReadMessage[T any](data []byte) (v T, err error) {
	err = message.Decode(data, maxMessageBytes, &v)
	return v, err
}

// ReadTold is ReadMessage for gossip and answers: it passes over a tail that it does not know.
func ReadTold[T any](data []byte) (v T, err error) {
	err = message.Read(data, maxMessageBytes, &v)
	return v, err
}

// DecodeBatch reads what Batch.Encode writes. What a later release asks is read as Unknown.
func (t Table) DecodeBatch(data []byte) (*Batch, error) {
	b, err := t.decodeBatch(data, false)
	if err != nil && b != nil && readsLater(b.Lane) {
		if later, failed := t.decodeBatch(data, true); failed == nil {
			return later, nil
		}
	}
	return b, err
}

func (t Table) decodeBatch(data []byte, later bool) (*Batch, error) {
	r, err := Scanned(data)
	if err != nil {
		return nil, err
	}
	fields := r.Array()
	if fields == 5 {
		r.Fail("batch of an earlier release, which does not say when it was made")
	} else if fields < 6 {
		r.Fail("batch of %d fields", fields)
	}
	b := &Batch{Sender: r.Text()}
	lane := r.Uint()
	b.Lane, b.Number, b.Made, b.Principal = uint8(lane), r.Uint(), events.Millis(r.Int()), r.Text()
	n := r.Array()
	if lane >= uint64(LaneCount) || len(b.Sender) > events.MaxNameBytes || b.Number == 0 || b.Sender == "" || n == 0 || n%2 != 0 || n > 2*MaxBatchCommands {
		r.Fail("batch %d of lane %d from %q with %d commands", b.Number, lane, b.Sender, n/2)
		return nil, r.Err()
	}
	b.Commands = make([]Command, 0, n/2)
	var outcomes []Complete // they come in hundreds: one piece of memory for all
	for left := n / 2; left > 0; left-- {
		op := r.Uint()
		if later {
			b.Commands = append(b.Commands, t.decodeLater(r, op))
			continue
		}
		var c Command
		if op == opComplete {
			if len(outcomes) == 0 {
				outcomes = make([]Complete, left)
			}
			c, outcomes = &outcomes[0], outcomes[1:]
		} else if c = t.New(op); c == nil {
			return b, fmt.Errorf("%w: command %d is unknown", wire.ErrMalformed, op)
		}
		Decode(r, c)
		b.Commands = append(b.Commands, c)
	}
	switch {
	case later:
		b.decodeTail(r, fields)
	case fields > 7:
		r.Tail(fields, 7)
	case fields == 7:
		b.decodeAsked(r)
	}
	return b, r.Close()
}

// EncodeAnswerMessage writes what goes back to the sender of a batch; nil answers acknowledge that it has come. recorded
// tells that they are in the journal.
func EncodeAnswerMessage(shard int, b *Batch, answers []Answer, recorded bool) []byte {
	var body []byte
	if answers != nil {
		body = EncodeAnswers(answers)
	}
	w := wire.Writer{B: make([]byte, 0, len(body)+32)}
	w.Array(5)
	w.Uint(uint64(shard))
	w.Uint(uint64(b.Lane))
	w.Uint(b.Number)
	w.Bytes(body)
	w.Bool(recorded)
	return w.B
}

// DecodeAnswerMessage reads what EncodeAnswerMessage writes.
func DecodeAnswerMessage(data []byte) (shard int, laneID uint8, number uint64, answers []Answer, recorded bool, err error) {
	r, err := Scanned(data)
	if err != nil {
		return 0, 0, 0, nil, false, err
	}
	tail := r.ArrayFrom(5)
	shard64, lane64 := r.Uint(), r.Uint()
	number = r.Uint()
	body := r.View()
	recorded = r.Bool()
	r.Skip(tail)
	if shard64 >= store.MaxShards || lane64 >= uint64(LaneCount) {
		r.Fail("answer from shard %d, lane %d", shard64, lane64)
	}
	shard, laneID = int(shard64), uint8(lane64)
	if err := r.Close(); err != nil {
		return 0, 0, 0, nil, false, err
	}
	if body != nil {
		answers, err = DecodeAnswers(body)
	}
	return shard, laneID, number, answers, recorded, err
}
