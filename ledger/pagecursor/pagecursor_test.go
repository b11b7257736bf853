package pagecursor_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/ledger/pagecursor"
	"taskledger/store"
)

var (
	of = pagecursor.Cursor{Cluster: "c", Task: "a/b"}
	at = pagecursor.Cursor{Cluster: "c", Task: "a/b", Ref: events.RefOf(7, 3), Seq: 12, Last: events.RefOf(9, 0), Behavior: "work", Node: "a-aaaaaaaaaa"}
)

func TestParse_ReadsWhatStringReturns(t *testing.T) {
	if got, err := pagecursor.Parse(at.String(), of); err != nil || got != at {
		t.Errorf("%+v, %v; want %+v", got, err, at)
	}
}

func TestParse_BombsCostLittle(t *testing.T) {
	sample, err := base64.RawURLEncoding.DecodeString(at.String())
	if err != nil {
		t.Fatal(err)
	}
	testkit.CheckGrafts(t, sample, 512, func(b []byte) error {
		_, err := pagecursor.Parse(base64.RawURLEncoding.EncodeToString(b), of)
		return err
	})
}

// FuzzParse reads any text: what is accepted is what String returns, and of what was asked for.
func FuzzParse(f *testing.F) {
	f.Add(at.String())
	f.Add(pagecursor.Cursor{Cluster: "c", Task: "a/b", Newest: true, Ref: 1}.String())
	f.Add(pagecursor.Cursor{Cluster: "c", Task: "a/b", Ref: 1, Seq: 1, Last: 2, Behavior: "work"}.String())
	f.Add(pagecursor.Cursor{Cluster: "d", Task: "a/b"}.String())
	f.Add("k6dIaXN0b3J5Ag")
	f.Add(strings.Repeat("A", 1025))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := pagecursor.Parse(text, of)
		var invalid *store.InvalidError
		if err == nil && (c.String() != text || c.Cluster != of.Cluster || c.Task != of.Task || c.Newest) ||
			err != nil && (!errors.As(err, &invalid) || invalid.Field != "cursor") {
			t.Errorf("%q is read as %+v, %v", text, c, err)
		}
	})
}
