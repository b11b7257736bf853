package message_test

import (
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"taskledger/internal/message"
	"taskledger/internal/wire"
)

// grown is inner with fields that its first release did not have.
type grown struct {
	Text  string
	Sum   int64
	Since int64
	Notes []string
}

func (*grown) Optional() int { return 2 }

func TestRead_PassesOverATail(t *testing.T) {
	want := inner{"t", -7}
	for name, tail := range map[string]string{"none": "92a174f9", "a number": "93a174f901", "many": "96a174f991c081a161c0c4017890", "of a later release": hex.EncodeToString(message.Encode(grown{"t", -7, 3, []string{"n"}}))} {
		data, err := hex.DecodeString(tail)
		if err != nil {
			t.Fatal(err)
		}
		got := inner{"before", 1}
		if err := message.Read(data, limit, &got); err != nil || got != want {
			t.Errorf("%s: read as %+v, %v; want %+v", name, got, err, want)
		}
		if err := message.Decode(data, limit, &got); (err == nil) != (name == "none") {
			t.Errorf("%s: decoded: %v", name, err)
		} else if err != nil && (!errors.Is(err, wire.ErrTail) || !errors.Is(err, wire.ErrMalformed) || got != inner{}) {
			t.Errorf("%s: decoded as %+v, %v; want %v", name, got, err, wire.ErrTail)
		}
	}
}

// parts is a message whose parts may grow, too.
type parts struct {
	Rows []inner
	One  inner
}

func TestRead_PassesOverTailsOfParts(t *testing.T) {
	type laterParts struct {
		Rows []grown
		One  grown
		More string
	}
	later := grown{"t", -7, 3, []string{"n"}}
	data := message.Encode(laterParts{[]grown{later, later, later}, later, "x"})
	want := parts{[]inner{{"t", -7}, {"t", -7}, {"t", -7}}, inner{"t", -7}}
	var got parts
	if err := message.Read(data, limit, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v, %v; want %+v", got, err, want)
	}
	if err := message.Decode(data, limit, &got); !errors.Is(err, wire.ErrTail) || !reflect.DeepEqual(got, parts{}) {
		t.Errorf("decoded as %+v, %v; want %v", got, err, wire.ErrTail)
	}
}

func TestRead_RefusesWhatIsMoreThanATail(t *testing.T) {
	for name, text := range map[string]string{"a field less": "91a174", "another type": "930101a174", "a long head": "dc0003a174f901", "nothing in the tail": "93a174f9", "bytes after it": "92a174f901",
		"a longer head in the message": "93a174d0f901"} {
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got := inner{"before", 1}
		if err := message.Read(data, limit, &got); !errors.Is(err, wire.ErrMalformed) || got != (inner{}) {
			t.Errorf("%s: read as %+v, %v", name, got, err)
		}
	}
}

func TestDecode_OptionalFieldsMayBeMissing(t *testing.T) {
	for text, want := range map[string]grown{
		"92a174f9":         {"t", -7, 0, nil},
		"93a174f903":       {"t", -7, 3, nil},
		"94a174f90391a16e": {"t", -7, 3, []string{"n"}},
	} {
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got := grown{"before", 1, 1, []string{"before"}}
		if err := message.Decode(data, limit, &got); err != nil || got.Text != want.Text || got.Sum != want.Sum || got.Since != want.Since || len(got.Notes) != len(want.Notes) {
			t.Errorf("%s is read as %+v, %v; want %+v", text, got, err, want)
		}
	}
	var got grown
	if err := message.Decode([]byte{0x91, 0xa1, 't'}, limit, &got); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("without a field of the first release: %+v, %v", got, err)
	}
}

// Programs that do not know the optional fields read a message that says nothing in them.
func TestEncode_LeavesOutOptionalFieldsThatSayNothing(t *testing.T) {
	for want, g := range map[string]*grown{
		"92a174f9":         {Text: "t", Sum: -7},
		"93a174f903":       {Text: "t", Sum: -7, Since: 3},
		"94a174f90091a16e": {Text: "t", Sum: -7, Notes: []string{"n"}},
	} {
		data := message.Encode(g)
		if got := hex.EncodeToString(data); got != want {
			t.Errorf("%+v is encoded as %s, want %s", *g, got, want)
		}
		var got grown
		if err := message.Decode(data, limit, &got); err != nil || !reflect.DeepEqual(got, *g) {
			t.Errorf("%+v is decoded as %+v, %v", *g, got, err)
		}
	}
	if got := hex.EncodeToString(message.Encode(&grown{})); got != "92a000" {
		t.Errorf("zero fields that are not optional are encoded as %s", got)
	}
}
