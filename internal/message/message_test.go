package message_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"taskledger/internal/message"
	"taskledger/internal/testkit"
	"taskledger/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 1536 << 10

type (
	name  string
	blob  []byte
	inner struct {
		Text string
		Sum  int64
	}
	outer struct{ Inners []inner }
	// sample has every kind of field.
	sample struct {
		Flag   bool
		Signed int64
		Number uint64
		Text   name
		Bytes  blob
		Texts  []string
		Names  []name
		Blobs  [][]byte
		Inner  inner
		Inners []inner
		Deep   []outer
	}
)

var full = sample{true, -2, 300, "t", blob{1}, []string{"a", ""}, []name{"n"}, [][]byte{nil, {}, {7}}, inner{"i", math.MinInt64},
	[]inner{{"x", 1}, {"", -40}}, []outer{{nil}, {[]inner{}}, {[]inner{{"y", 2}}}}}

func TestEncode_IsAnArrayOfTheFieldsInTheirOrder(t *testing.T) {
	want := "9b" + "c3" + "fe" + "cd012c" + "a174" + "c40101" + "92a161a0" + "91a16e" + "93c0c400c40107" +
		"92a169d38000000000000000" + "9292a1780192a0d0d8" + "9391c091909191" + "92a17902"
	if got := hex.EncodeToString(message.Encode(full)); got != want {
		t.Errorf("encoded as\n%s, want\n%s", got, want)
	}
	if !bytes.Equal(message.Encode(full), message.Encode(&full)) {
		t.Error("a pointer to it is encoded as something else")
	}
}

func draw(t *rapid.T) (v sample) {
	text, bin := rapid.StringN(0, 40, 80), rapid.SliceOfN(rapid.Byte(), 0, 300)
	v.Flag, v.Signed, v.Number, v.Text = rapid.Bool().Draw(t, "flag"), rapid.Int64().Draw(t, "signed"), rapid.Uint64().Draw(t, "number"), name(text.Draw(t, "text"))
	one := rapid.Custom(func(t *rapid.T) inner { return inner{text.Draw(t, "text"), rapid.Int64().Draw(t, "sum")} })
	if rapid.Bool().Draw(t, "nothing else") {
		return v
	}
	v.Bytes, v.Texts = bin.Draw(t, "bytes"), rapid.SliceOfN(text, 0, 20).Draw(t, "texts")
	v.Names = rapid.SliceOfN(rapid.Map(text, func(s string) name { return name(s) }), 0, 3).Draw(t, "names")
	v.Blobs, v.Inner = rapid.SliceOfN(bin, 0, 3).Draw(t, "blobs"), one.Draw(t, "inner")
	v.Inners = rapid.SliceOfN(one, 0, 20).Draw(t, "inners")
	v.Deep = rapid.SliceOfN(rapid.Map(rapid.SliceOfN(one, 0, 3), func(all []inner) outer { return outer{all} }), 0, 3).Draw(t, "deep")
	return v
}

func TestDecode_ReadsWhatEncodeWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t)
		got := full // all of it is to go
		if err := message.Decode(message.Encode(want), limit, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
	})
}

func TestDecode_NumbersAtTheirBorders(t *testing.T) {
	for _, v := range []int64{0, -1, -32, -33, -128, -129, math.MinInt16, math.MinInt16 - 1, math.MinInt32, math.MinInt32 - 1, math.MinInt64,
		127, 128, 255, 256, math.MaxUint16, math.MaxUint16 + 1, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64} {
		want := sample{Signed: v, Number: uint64(v)}
		var got sample
		if err := message.Decode(message.Encode(want), limit, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d is read as %d and %d, %v", v, got.Signed, got.Number, err)
		}
	}
}

func TestDecode_SharesNoMemory(t *testing.T) {
	data := message.Encode(full)
	before := sample{Bytes: blob{9, 9}, Blobs: [][]byte{{8, 8}}, Texts: []string{"own"}, Inners: []inner{{"own", 1}}}
	kept := before
	if err := message.Decode(data, limit, &before); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if !reflect.DeepEqual(before, full) {
		t.Errorf("%+v after the message was overwritten", before)
	}
	want := sample{Bytes: blob{9, 9}, Blobs: [][]byte{{8, 8}}, Texts: []string{"own"}, Inners: []inner{{"own", 1}}}
	if !reflect.DeepEqual(kept, want) {
		t.Errorf("what the struct held before was overwritten: %+v", kept)
	}
}

// fields is a message whose fields can be replaced one by one.
type fields struct {
	Flag   bool
	Signed int64
	Number uint64
	Text   string
	Bytes  []byte
	Texts  []string
	Inner  inner
	Inners []inner
}

func TestDecode_RefusesWhatEncodeNeverMakes(t *testing.T) {
	sound := []string{"c3", "01", "01", "a161", "c40101", "91a161", "92a16101", "9192a16101"}
	for field, forms := range map[int]map[string]string{
		0: {"nil": "c0", "number": "01", "string": "a0"},
		1: {"nil": "c0", "float": "ca00000000", "double": "cb0000000000000000", "string": "a0", "boolean": "c2", "above int64": "cfffffffffffffffff", "array": "90"},
		2: {"nil": "c0", "negative": "ff", "negative in 1 byte": "d0ff", "negative in 8 bytes": "d3ffffffffffffffff", "float": "ca00000000"},
		3: {"nil": "c0", "bytes": "c40161", "number": "01", "extension": "d40161"},
		4: {"string": "a161", "array of numbers": "9101", "number": "01"},
		5: {"string": "a161", "nil in it": "91c0", "bytes in it": "91c40161", "map": "81a161a161"},
		6: {"nil": "c0", "no field": "90", "a field less": "91a161", "a field more": "93a1610101", "map": "82a454657874a161a353756d01",
			"empty map": "80", "its fields in another order": "9201a161"},
		7: {"nil in it": "91c0", "empty in it": "9190", "a field less in it": "9191a161", "a struct instead": "92a16101", "map": "80"},
	} {
		for what, form := range forms {
			all := slices.Clone(sound)
			all[field] = form
			refuses(t, what+" as field "+string(rune('0'+field)), "98"+strings.Join(all, ""))
		}
	}
	whole := "98" + strings.Join(sound, "")
	var got fields
	if data, _ := hex.DecodeString(whole); message.Decode(data, limit, &got) != nil {
		t.Fatal("the sound message is refused")
	}
	refuses(t, "nothing", "")
	refuses(t, "nil", "c0")
	refuses(t, "empty array", "90")
	refuses(t, "map", "80")
	refuses(t, "a field less", "97"+strings.Join(sound[:7], ""))
	refuses(t, "a field more", "99"+strings.Join(sound, "")+"01")
	refuses(t, "a byte more", whole+"01")
	refuses(t, "a byte less", whole[:len(whole)-2])
}

func TestDecode_RefusesHeadsLongerThanTheyNeedBe(t *testing.T) {
	sound := []string{"c3", "01", "01", "a161", "c40101", "91a161", "92a16101", "9192a16101"}
	many := func(head string, n int, each string) string { return head + strings.Repeat(each, n) }
	for field, forms := range map[int][]string{
		1: {"cc7f", "cd00ff", "ce0000ffff", "cf00000000ffffffff", "d001", "d0e0", "d1ff80", "d2ffff8000", "d3ffffffff80000000", "d30000000000000001", "d100ff"},
		2: {"cc00", "cd0080", "ce00000100", "cf0000000000010000"},
		3: {"d90161", many("d91f", 31, "61"), "da000161", many("da00ff", 255, "61"), "db0000000161", many("db0000ffff", 0xffff, "61")},
		4: {"c5000101", many("c500ff", 255, "01"), "c60000000101", many("c60000ffff", 0xffff, "01"), "c50000"},
		5: {"dc0001a161", many("dc000f", 15, "a0"), "dd00000001a161", many("dd0000ffff", 0xffff, "a0"), "91d90161", "dc0000"},
		6: {"dc0002a16101", "dd00000002a16101", "92a161cc01", "92d9016101"},
		7: {"dc000192a16101", "91dc0002a16101", "9192d9016101", "9192a161cc01"},
	} {
		for _, form := range forms {
			all := slices.Clone(sound)
			all[field] = form
			refuses(t, form[:min(len(form), 20)]+" as field "+string(rune('0'+field)), "98"+strings.Join(all, ""))
		}
	}
	refuses(t, "a long head of all", "dc0008"+strings.Join(sound, ""))
	refuses(t, "a longer head of all", "dd00000008"+strings.Join(sound, ""))
}

// Each length begins to need a longer head at one of these.
func TestDecode_LengthsAtTheirBorders(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 0xffff, 0x10000} {
		want := fields{Text: strings.Repeat("x", n), Bytes: bytes.Repeat([]byte{7}, n), Texts: slices.Repeat([]string{"x"}, n),
			Inners: slices.Repeat([]inner{{"x", 1}}, n)}
		var got fields
		if err := message.Decode(message.Encode(want), limit, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("lengths of %d are not read: %v", n, err)
		}
	}
}

func refuses(t *testing.T, what, form string) {
	t.Helper()
	data, err := hex.DecodeString(form)
	if err != nil {
		t.Fatal(err)
	}
	got := fields{Text: "before"}
	if err := message.Decode(data, limit, &got); !errors.Is(err, wire.ErrMalformed) || !reflect.DeepEqual(got, fields{}) {
		t.Errorf("%s is read as %+v, %v; want an error that wraps ErrMalformed", what, got, err)
	}
}

func TestDecode_RefusesWhatExceedsTheLimit(t *testing.T) {
	data := message.Encode(inner{"abc", 1})
	var got inner
	if err := message.Decode(data, len(data), &got); err != nil {
		t.Error(err)
	}
	if err := message.Decode(data, len(data)-1, &got); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a byte above the limit: %v, want an error that wraps ErrMalformed", err)
	}
}

// even is a message that must be even.
type even struct{ Number uint64 }

var errOdd = errors.New("odd")

func (e *even) Check() error {
	if e.Number%2 != 0 {
		return errOdd
	}
	return nil
}

func TestDecode_AsksAChecker(t *testing.T) {
	var got even
	if err := message.Decode(message.Encode(even{2}), limit, &got); err != nil || got.Number != 2 {
		t.Errorf("2 is read as %d, %v", got.Number, err)
	}
	if err := message.Decode(message.Encode(even{3}), limit, &got); !errors.Is(err, wire.ErrMalformed) || !errors.Is(err, errOdd) || got.Number != 0 {
		t.Errorf("3 is read as %d, %v", got.Number, err)
	}
}

type recursive struct{ Sub []recursive }

func TestEncode_PanicsForWhatIsNoMessage(t *testing.T) {
	for reason, v := range map[string]any{
		"a message is a struct":               []string{"a"},
		"is of no kind that a message has":    struct{ A int }{},
		"uint32 is of no kind":                struct{ A []struct{ B uint32 } }{},
		"*int64 is of no kind":                struct{ A *int64 }{},
		"map[string]string is of no kind":     struct{ A map[string]string }{},
		"[4]uint8 is of no kind":              struct{ A [4]byte }{},
		"interface {} is of no kind":          struct{ A any }{},
		"struct {} is of no kind":             struct{ A struct{} }{},
		"field a is unexported":               struct{ a int64 }{},
		"field inner is unexported, embedded": struct{ inner }{},
		"unexported, embedded or has a tag": struct {
			A int64 `msgpack:"-"`
		}{},
		"time.Time encodes itself":             struct{ A time.Time }{},
		"[][]string has slices in a slice":     struct{ A [][]string }{},
		"nests deeper than 32":                 recursive{},
		"field A: field B: int8 is of no kind": struct{ A struct{ B int8 } }{},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, reason) {
					t.Errorf("%T: %q, want a panic that says %q", v, got, reason)
				}
			}()
			message.Encode(v)
		}()
	}
}

// Pools and caches are shared by all: what one bubble put there must be of use to another, and to what runs in none.
func TestDecode_InBubblesOfTheirOwn(t *testing.T) {
	round := func(t *testing.T) {
		var got sample
		if err := message.Decode(message.Encode(full), limit, &got); err != nil || !reflect.DeepEqual(got, full) {
			t.Errorf("read as %+v, %v", got, err)
		}
	}
	for range 3 {
		synctest.Test(t, round)
		round(t)
	}
}

func TestDecode_BombsCostLittle(t *testing.T) {
	testkit.CheckBombs(t, message.Encode(full), func(b []byte) error { return message.Decode(b, limit, new(sample)) })
}

// FuzzDecode decodes any bytes: errors wrap ErrMalformed, memory stays within 64 times the input, and what is accepted
// is what Encode makes of it.
func FuzzDecode(f *testing.F) {
	f.Add(message.Encode(full))
	f.Add(message.Encode(sample{}))
	f.Add(message.Encode(sample{Blobs: make([][]byte, 1000), Inners: make([]inner, 1000), Deep: make([]outer, 1000)}))
	f.Add([]byte{0xdd, 0x00, 0x00, 0x10, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		var got sample
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := message.Decode(data, limit, &got)
		runtime.ReadMemStats(&after)
		if n, most := after.TotalAlloc-before.TotalAlloc, 64*uint64(len(data))+64<<10; n > most {
			t.Fatalf("%d bytes allocated to decode %d", n, len(data))
		}
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("%v does not wrap ErrMalformed", err)
			}
			return
		}
		if !bytes.Equal(message.Encode(got), data) {
			t.Fatalf("%x is read as %+v, of which Encode makes %x", data, got, message.Encode(got))
		}
	})
}
