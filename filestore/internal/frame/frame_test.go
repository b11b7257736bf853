package frame_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"taskledger/filestore/internal/frame"
)

// drawn are data of any form: also those that a disk makes of what it has not written.
func drawn(t *rapid.T) []byte {
	data := make([]byte, rapid.IntRange(1, 3000).Draw(t, "length"))
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		seed := rapid.Uint64().Draw(t, "seed")
		random := rand.New(rand.NewPCG(seed, seed))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
	case 1:
		data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] = 1
	case 2: // a file of records
		for len(data) < 4000 {
			data = append(data, embedded(t)...)
		}
	}
	return data
}

// embedded is a record, or the beginning of one, that knows of any offset.
func embedded(t *rapid.T) []byte {
	record, err := frame.Append(nil, 0, frame.Frame{
		Number:  1,
		Durable: rapid.Int64Range(0, 1<<62).Draw(t, "embedded"),
		Data:    []byte("data"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return record[:rapid.IntRange(1, len(record)).Draw(t, "of it")]
}

// write appends a frame at an offset of a file, which is filled up to there.
func write(t *rapid.T) (file []byte, at int64, f frame.Frame) {
	at = rapid.Int64Range(0, 2000).Draw(t, "offset")
	f = frame.Frame{
		Shard:    rapid.IntRange(-2, 256).Draw(t, "shard"),
		Number:   rapid.Uint64().Draw(t, "number"),
		Revision: rapid.Int64().Draw(t, "revision"),
		Durable:  rapid.Int64Range(0, at).Draw(t, "durable"),
		Data:     drawn(t),
	}
	record, err := frame.Append(nil, at, f)
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Repeat([]byte{0xee}, int(at)), record...), at, f
}

func TestRead_ReturnsWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file, at, f := write(t)
		got, next, err := frame.Read(file, at)
		same := got.Shard == f.Shard && got.Number == f.Number && got.Revision == f.Revision && got.Durable == f.Durable
		if err != nil || next != int64(len(file)) || !same || !bytes.Equal(got.Data, f.Data) {
			t.Fatalf("read %+v up to %d, %v; want %+v up to %d", got, next, err, f, len(file))
		}
	})
}

// torn reports whether the record at an offset looks as if a crash had cut it short. It must be broken.
func torn(t *rapid.T, file []byte, at int64) bool {
	_, _, err := frame.Read(file, at)
	broken, is := errors.AsType[*frame.BrokenError](err)
	if !is {
		t.Fatalf("a broken record is read with %v", err)
	}
	return broken.Torn
}

func TestRead_AFlippedBitIsNeverTakenForATornWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file, at, _ := write(t)
		bit := rapid.Int64Range(8*at, 8*int64(len(file))-1).Draw(t, "bit")
		file[bit/8] ^= 1 << (bit % 8)
		if torn(t, file, at) {
			t.Fatalf("bit %d of %d at offset %d looks like a torn write", bit, 8*len(file), at)
		}
	})
}

func TestRead_AWriteThatWasCutShortIsTorn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file, at, _ := write(t)
		if cut := rapid.Int64Range(at, int64(len(file))-1).Draw(t, "cut"); !torn(t, file[:cut], at) {
			t.Fatalf("%d of %d bytes from offset %d on do not look like a torn write", cut, len(file), at)
		}
	})
}

func TestRead_AWriteOfWhichASectorIsMissingIsTorn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file, at, _ := write(t)
		sector := rapid.Int64Range(at/512, (int64(len(file))-1)/512).Draw(t, "sector")
		clear(file[max(at, sector*512):min(int64(len(file)), (sector+1)*512)])
		if !torn(t, file, at) {
			t.Fatalf("a record from offset %d on without sector %d does not look torn", at, sector)
		}
	})
}

func TestDurableAfter_IsWhatLaterRecordsKnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file, at, _ := write(t)
		if got := frame.DurableAfter(file, at); got != 0 {
			t.Fatalf("nothing follows, and %d is known", got)
		}
		var want int64
		for range rapid.IntRange(1, 4).Draw(t, "records") {
			durable := rapid.Int64Range(0, int64(len(file))).Draw(t, "known")
			record, err := frame.Append(nil, int64(len(file)), frame.Frame{Number: 1, Durable: durable, Data: drawn(t)})
			if err != nil {
				t.Fatal(err)
			}
			file, want = append(append(file, 0xee), record...), max(want, durable)
		}
		if got := frame.DurableAfter(file, at); got != want {
			t.Fatalf("%d is known, want %d", got, want)
		}
	})
}

// Whoever has a record kept cannot have its data taken for records: they may be a copy of a file, or be made for it.
func TestDurableAfter_TakesNothingInTheDataOfARecordForOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var data []byte
		for range rapid.IntRange(1, 5).Draw(t, "embedded records") {
			data = append(append(data, make([]byte, rapid.IntRange(0, 600).Draw(t, "between"))...), embedded(t)...)
		}
		var file []byte
		for number := range uint64(3) { // what follows a record may complete what its data begin
			var err error
			if file, err = frame.Append(file, 0, frame.Frame{Number: number, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		if got := frame.DurableAfter(file, 0); got != 0 {
			t.Fatalf("data say that %d bytes were synced, and that is believed", got)
		}
	})
}

// The sequences of the seeds that are tried first are known: data may be made to hold a header under each of them.
func TestDurableAfter_IsNotMisledByDataThatAreMadeForTheSeeds(t *testing.T) {
	header, err := frame.Append(nil, 0, frame.Frame{Number: 1, Durable: 50, Data: []byte("data")})
	if err != nil {
		t.Fatal(err)
	}
	header = header[:frame.HeaderBytes]
	var data []byte
	for seed := range uint32(1024) {
		under := make([]byte, len(data)+len(header))
		frame.Mask(under, seed)
		for i, b := range header {
			data = append(data, b^under[len(under)-len(header)+i])
		}
	}
	file, err := frame.Append(bytes.Repeat([]byte{0xee}, 100), 0, frame.Frame{Number: 1, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if got := frame.DurableAfter(file, 0); got != 0 {
		t.Errorf("data say that %d bytes were synced, and that is believed", got)
	}
	f, _, err := frame.Read(file, 100)
	if err != nil || !bytes.Equal(f.Data, data) {
		t.Errorf("read %d bytes, %v", len(f.Data), err)
	}
}

// Older programs have left headers in the data as they were. A record knows nothing of what is behind it.
func TestDurableAfter_OfAnOffsetBehindTheRecordThatTellsItIsNotBelieved(t *testing.T) {
	for _, durable := range []int64{101, 1 << 62, -1} {
		file, err := frame.Append(bytes.Repeat([]byte{0xee}, 100), 0, frame.Frame{Durable: durable, Data: []byte("data")})
		if err != nil {
			t.Fatal(err)
		}
		if got := frame.DurableAfter(file, 0); got != 0 {
			t.Errorf("a record at offset 100 tells that %d bytes were synced, and %d is believed", durable, got)
		}
	}
}

func TestAppend_RefusesWhatNoRecordHolds(t *testing.T) {
	if _, err := frame.Append(nil, 0, frame.Frame{}); !errors.Is(err, frame.ErrEmpty) {
		t.Errorf("no data: %v", err)
	}
	large := make([]byte, frame.MaxData+1)
	if _, err := frame.Append(nil, 0, frame.Frame{Data: large}); !errors.Is(err, frame.ErrTooLarge) {
		t.Errorf("too much: %v", err)
	}
}

// Whatever a file holds, reading it ends with a record inside it or with a BrokenError.
func FuzzRead(f *testing.F) {
	whole, err := frame.Append(nil, 0, frame.Frame{Number: 1, Data: []byte("data")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, int64(0))
	f.Add(whole[:40], int64(3))
	f.Fuzz(func(t *testing.T, file []byte, at int64) {
		if at < 0 || at > int64(len(file)) {
			return
		}
		_, next, err := frame.Read(file, at)
		_, is := errors.AsType[*frame.BrokenError](err)
		if err != nil && !is || err == nil && (next <= at || next > int64(len(file))) {
			t.Errorf("read up to %d of %d: %v", next, len(file), err)
		}
		if durable := frame.DurableAfter(file, at); durable < 0 || durable > int64(len(file)) {
			t.Errorf("%d of %d bytes were synced", durable, len(file))
		}
	})
}
