package events_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/wire"
)

func damaged(t *testing.T, data []byte, what string, args ...any) {
	t.Helper()
	if e, err := events.Decode(data); !errors.Is(err, events.ErrDamaged) || e != nil {
		t.Fatalf(what+": Decode = %v, %v; want an error that wraps ErrDamaged", append(args, e, err)...)
	}
}

func TestDecode_DetectsEveryChangedByte(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins[:1], samples()[9])
	for i, was := range data {
		for v := range 256 {
			if data[i] = byte(v); data[i] != was {
				damaged(t, data, "byte %d from %#02x to %#02x", i, was, v)
			}
		}
		data[i] = was
	}
}

func TestDecode_DetectsEveryFlippedBitOfEveryKind(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	for i := range 8 * len(data) {
		data[i/8] ^= 1 << (i % 8)
		damaged(t, data, "bit %d of byte %d", i%8, i/8)
		data[i/8] ^= 1 << (i % 8)
	}
}

func TestDecode_DetectsEveryCutAndAppendedBytes(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	for n := range data {
		damaged(t, data[:n], "cut to %d bytes", n)
	}
	damaged(t, append(bytes.Clone(data), 0), "a byte appended")
	damaged(t, append(bytes.Clone(data), data...), "the entry twice")
	damaged(t, nil, "nothing")
}

// join is the stored form of a taken-apart entry, whatever it holds.
func (r raw) join() []byte {
	var w wire.Writer
	w.Array(5)
	w.Uint(events.EntryVersion)
	w.Bytes(r.head)
	w.Array(2 * len(r.origins))
	for i := range r.origins {
		w.Bytes(r.origins[i])
		w.Bytes(r.answers[i])
	}
	w.Array(2 * len(r.headers))
	for i := range r.headers {
		w.Bytes(r.headers[i])
		w.Bytes(r.payloads[i])
	}
	w.Bytes(r.hash)
	return w.B
}

func TestDecode_DetectsEventsRemovedAddedOrSwapped(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	if got := parse(t, data).join(); !bytes.Equal(got, data) {
		t.Fatal("taking apart and joining changes an entry")
	}
	elsewhere := sampleHead()
	elsewhere.Number++
	other, otherData := seal(t, elsewhere, sampleOrigins, samples()[1])
	for name, change := range map[string]func(r *raw){
		"first event removed": func(r *raw) { r.headers, r.payloads = r.headers[1:], r.payloads[1:] },
		"last event removed": func(r *raw) {
			r.headers, r.payloads = r.headers[:len(r.headers)-1], r.payloads[:len(r.payloads)-1]
		},
		"all events removed": func(r *raw) { r.headers, r.payloads = nil, nil },
		"event repeated": func(r *raw) {
			r.headers, r.payloads = append(r.headers, r.headers[0]), append(r.payloads, r.payloads[0])
		},
		"events swapped": func(r *raw) {
			r.headers[1], r.headers[2] = r.headers[2], r.headers[1]
			r.payloads[1], r.payloads[2] = r.payloads[2], r.payloads[1]
		},
		"payloads swapped":      func(r *raw) { r.payloads[0], r.payloads[9] = r.payloads[9], r.payloads[0] },
		"payload removed":       func(r *raw) { r.payloads[0] = nil },
		"payload emptied":       func(r *raw) { r.payloads[0] = []byte{} },
		"empty payload added":   func(r *raw) { r.payloads[1] = []byte{} },
		"head of another entry": func(r *raw) { r.head = parse(t, otherData).head },
		"first origin removed":  func(r *raw) { r.origins, r.answers = r.origins[1:], r.answers[1:] },
		"all origins removed":   func(r *raw) { r.origins, r.answers = nil, nil },
		"origin repeated": func(r *raw) {
			r.origins, r.answers = append(r.origins, r.origins[0]), append(r.answers, r.answers[0])
		},
		"origins swapped": func(r *raw) {
			r.origins[0], r.origins[1] = r.origins[1], r.origins[0]
			r.answers[0], r.answers[1] = r.answers[1], r.answers[0]
		},
		"answers swapped":         func(r *raw) { r.answers[0], r.answers[1] = r.answers[1], r.answers[0] },
		"answers removed":         func(r *raw) { r.answers[0] = nil },
		"empty answers added":     func(r *raw) { r.answers[1] = []byte{} },
		"hash of another entry":   func(r *raw) { r.hash = other.Hash[:] },
		"hash cut":                func(r *raw) { r.hash = r.hash[:31] },
		"hash missing":            func(r *raw) { r.hash = nil },
		"events of another entry": func(r *raw) { o := parse(t, otherData); r.headers, r.payloads = o.headers, o.payloads },
		"predecessor's hash zeroed": func(r *raw) {
			r.head = bytes.Replace(r.head, []byte{0xde, 0xad, 0xbe, 0xef}, make([]byte, 4), 1)
		},
	} {
		r := parse(t, data)
		change(&r)
		damaged(t, r.join(), "%s", name)
	}
}

// What cannot be read would leave its shard read-only, so it must not be written.
func TestSeal_RefusesWhatDecodeWouldRefuse(t *testing.T) {
	properties := map[string]string{}
	for i := range events.MaxProperties + 1 {
		properties[fmt.Sprint(i)] = ""
	}
	for name, ev := range map[string]events.Event{
		"empty task id":        {Body: &events.Deleted{}},
		"task id out of rules": {Task: "a b", Body: &events.Deleted{}},
		"payload too large":    {Task: "a", Body: &events.Merged{Params: make(events.Payload, events.MaxPayloadBytes+2)}},
		"too many properties":  {Task: "a", Body: &events.Failed{Error: events.Error{Properties: properties}}},
		"policy out of range":  {Task: "a", Body: &events.Created{Policy: events.Policy{Timeout: -1e6}}},
		"schedule of ties":     {Task: "a", Body: &events.Created{Ties: events.Ties{Schedule: strings.Repeat("s", events.MaxNameBytes+1)}}},
		"group of ties":        {Task: "a", Body: &events.Created{Ties: events.Ties{Group: strings.Repeat("g", events.MaxNameBytes+1)}}},
		"parent of ties":       {Task: "a", Body: &events.Created{Ties: events.Ties{Parent: "a b"}}},
		"given up entry":       {Body: &events.AcceptedLoss{Entry: 1 << 44}},
		"last entry":           {Body: &events.Recovered{Entry: 1 << 44}},
		"reason of a loss":     {Body: &events.AcceptedLoss{Reason: strings.Repeat("r", events.MaxNameBytes+1)}},
		"text of a loss":       {Body: &events.Recovered{Reason: "\xff"}},
		"reason of a pause":    {Body: &events.Paused{Reason: strings.Repeat("r", events.MaxNameBytes+1)}},
		"text of a pause":      {Body: &events.Paused{Reason: "\xff"}},
		"request of a record":  {RequestID: "r", Body: &events.Unpaused{}},
		"task of a record":     {Task: "a", Body: &events.Unpaused{}},
		"task of an item":      {Task: "a", Body: &events.ItemRemoved{ID: 1, Owner: 1}},
		"item 0":               {Task: "store:a/0", Body: &events.ItemRemoved{ID: 1, Owner: 1}},
		"item with a zero":     {Task: "store:a/01", Body: &events.ItemRemoved{ID: 1, Owner: 1}},
		"store without a name": {Task: "store:/1", Body: &events.ItemRemoved{ID: 1, Owner: 1}},
		"name of a store":      {Task: events.StoreItem(strings.Repeat("s", events.MaxStoreBytes+1), 1), Body: &events.ItemRemoved{ID: 1, Owner: 1}},
		"id 0":                 {Task: "store:a/1", Body: &events.ItemRemoved{Owner: 1}},
		"id too large":         {Task: "store:a/1", Body: &events.ItemReplaced{From: 1, To: events.MaxItemNumber + 1, Owner: 1}},
		"owner 0":              {Task: "store:a/1", Body: &events.ItemReplaced{From: 1, To: 2}},
		"item without a group": {Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Owner: 1, Data: events.Bytes(nil)}},
		"group":                {Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Group: strings.Repeat("g", events.MaxGroupBytes+1), Owner: 1, Data: events.Bytes(nil)}},
		"item without data":    {Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Group: "g", Owner: 1}},
		"data in JSON":         {Task: "store:a/1", Body: &events.ItemAdded{ID: 1, Group: "g", Owner: 1, Data: events.JSON([]byte("1"))}},
		"time of an item":      {Task: "store:a/1", Body: &events.ItemReplaced{From: 1, To: 2, Owner: 1, At: events.MaxItemTime + 1}},
	} {
		var b events.Builder
		b.Reset(sampleHead())
		b.Add(events.Event{Task: "a", Body: &events.Deleted{}})
		b.Add(ev)
		if data, err := b.Seal(); err == nil {
			_, err := events.Decode(data)
			t.Errorf("%s: sealed; Decode = %v", name, err)
		}
	}
}

func TestSeal_RefusesNothingAndTooMuch(t *testing.T) {
	var b events.Builder
	b.Reset(sampleHead())
	if _, err := b.Seal(); err == nil {
		t.Error("an entry without events was sealed")
	}
	largest := events.JSON(bytes.Repeat([]byte{' '}, events.MaxPayloadBytes))
	for range 3 {
		b.Add(events.Event{Task: "a", Body: &events.Merged{Params: largest}})
	}
	if _, err := b.Seal(); err == nil {
		t.Error("an entry above MaxEntryBytes was sealed")
	}
	b.Reset(sampleHead())
	b.Add(events.Event{Task: "a", Body: &events.Created{Params: largest}})
	b.Add(events.Event{Task: "a", Body: &events.Succeeded{Result: largest}})
	data, err := b.Seal()
	if err != nil {
		t.Fatalf("the largest parameters and the largest result in one entry: %v", err)
	}
	if _, err := events.Decode(data); err != nil {
		t.Error(err)
	}
}

func TestDecode_RefusesNumbersOutOfRange(t *testing.T) {
	for name, head := range map[string][]any{
		"shard":  {uint64(1 << 16), uint64(1), uint64(0)},
		"number": {uint64(0), uint64(1 << 44), uint64(0)},
		"lane":   {uint64(0), uint64(1), uint64(256)},
		"none":   {uint64(0), uint64(1), uint64(0)},
	} {
		var w wire.Writer
		w.Array(8)
		w.Uint(head[0].(uint64))
		w.Uint(head[1].(uint64))
		w.Int(1)
		w.Text("n")
		w.Int(1)
		w.Bytes(make([]byte, 32))
		w.Uint(1)
		w.Uint(events.FoldRules)
		forged := forge(w.B, origin(head[2].(uint64)), header(uint64(events.KindDeleted), 1, func(w *wire.Writer) { w.Array(0) }))
		if _, err := events.Decode(forged); (err == nil) != (name == "none") || err != nil && !errors.Is(err, events.ErrDamaged) {
			t.Errorf("%s out of range: %v", name, err)
		}
	}
	_, data := seal(t, sampleHead(), sampleOrigins[:1], samples()[1])
	genuine := parse(t, data)
	forge := func(head, header []byte) []byte { return forge(head, genuine.origins[0], header) }
	head := genuine.head
	none := func(w *wire.Writer) { w.Array(0) }
	if _, err := events.Decode(forge(head, header(uint64(events.KindDeleted), 1, none))); err != nil {
		t.Fatalf("a forged entry within its ranges: %v", err)
	}
	damaged(t, forge(head, header(0, 1, none)), "kind 0")
	damaged(t, forge(head, header(uint64(len(events.Kinds())+1), 1, none)), "kind of a later version")
	damaged(t, forge(head, header(256+uint64(events.KindDeleted), 1, none)), "kind beyond a byte")
	damaged(t, forge(head, header(uint64(events.KindDeleted), 3, none)), "origin unknown")
	damaged(t, forge(head, header(uint64(events.KindDeleted), 1<<63, none)), "origin beyond an int")
	damaged(t, forge(head, header(uint64(events.KindStarted), 1, func(w *wire.Writer) {
		w.Array(4)
		w.Text("n")
		w.Uint(1 << 32)
		w.Uint(0)
		w.Int(0)
	})), "attempt beyond 32 bits")
	damaged(t, forge(head, header(uint64(events.KindCreated), 1, func(w *wire.Writer) {
		w.Array(4)
		w.Text("b")
		w.Int(0)
		w.Int(0)
		w.Array(9)
		for _, v := range []int64{0, 0, 0, 0, 0, 0, 256, 0, 0} {
			w.Int(v)
		}
	})), "existing beyond a byte")
}

// header encodes the header of an event without any check.
func header(kind, origin uint64, body func(*wire.Writer)) []byte {
	var w wire.Writer
	w.Array(7)
	w.Uint(kind)
	w.Text("a")
	w.Uint(1)
	w.Uint(0)
	w.Uint(origin)
	w.Text("")
	body(&w)
	return w.B
}

// origin encodes an origin without any check.
func origin(lane uint64) []byte {
	var w wire.Writer
	w.Array(4)
	w.Text("s")
	w.Uint(lane)
	w.Uint(1)
	w.Text("p")
	return w.B
}

// forge stores an entry of one origin without answers and one event without payload, whose hash fits, without any check.
func forge(head, origin, header []byte) []byte { return forgeWith(head, origin, header, nil) }

// forgeWith is forge of an event with a payload.
func forgeWith(head, origin, header, payload []byte) []byte {
	o, e := digest(origin, nil), digest(header, payload)
	return raw{head: head, origins: [][]byte{origin}, answers: [][]byte{nil}, headers: [][]byte{header}, payloads: [][]byte{payload},
		hash: chain(head, slices.Concat(o[:], e[:]))}.join()
}

// chain is the hash of an entry; the first binary string of 32 bytes in its head is the hash of the entry before.
func chain(head, digests []byte) []byte {
	_, prev, _ := bytes.Cut(head, []byte{0xc4, sha256.Size})
	headSum := sha256.Sum256(head)
	sum := sha256.Sum256(slices.Concat(prev[:min(len(prev), sha256.Size)], headSum[:], digests))
	return sum[:]
}

func TestDecode_NamesWhatItFound(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	for _, version := range []byte{events.EntryVersion - 1, events.EntryVersion + 1} {
		data[1] = version
		if _, err := events.Decode(data); !errors.Is(err, events.ErrVersion) || !strings.Contains(err.Error(), fmt.Sprintf("version %d", version)) {
			t.Errorf("an entry of another version: %v, want its version named", err)
		}
	}
	data[1] = events.EntryVersion
	data[len(data)-1]++
	if _, err := events.Decode(data); err == nil || !strings.Contains(err.Error(), "entry 42 of shard 11") {
		t.Errorf("an entry with another hash: %v, want entry and shard named", err)
	}
}

// The byte that names the kind of an event may be what is damaged: no version of the program has written that.
func TestDecode_OfAKindThatTheHashContradictsIsDamageAndNoVersion(t *testing.T) {
	_, data := seal(t, sampleHead(), nil, samples()[0])
	at := bytes.Index(data, []byte("\x97\x01\xac"+"orders/purge")) + 1
	for _, kind := range []byte{0, 0x7f} {
		broken := bytes.Clone(data)
		broken[at] = kind
		if _, err := events.Decode(broken); !errors.Is(err, events.ErrDamaged) || errors.Is(err, events.ErrVersion) {
			t.Errorf("kind %d: %v, want damage alone", kind, err)
		}
	}
}
