package store_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/store"
)

const drawn = "abcdefgh27"

func TestSessionID_TellsTheNameOfItsNode(t *testing.T) {
	for _, c := range []struct{ name, inID string }{
		{"a", "a"},
		{"web-1", "web-1"},
		{"db_Main-02", "db_Main-02"},
		{"sixteen-charactr", "sixteen-charactr"},
		{"seventeen-charact", "seventeen-charac"},
		{"web-1.example.com", "web-1_example_co"},
		{"Küche 1", "K_che_1"},
		{"a/b*c>d.e", "a_b_c_d_e"},
		{"\xff\x00", "__"},
		{"-", "-"},
		{strings.Repeat("é", 256), strings.Repeat("_", 16)},
	} {
		id := store.SessionID(c.name, drawn)
		if id != c.inID+"-"+drawn || store.NodeName(id) != c.inID || !store.IsSessionID(id) {
			t.Errorf("node %q: session %q of node %q", c.name, id, store.NodeName(id))
		}
	}
}

func TestNodeName_OfAnIDWithoutNameIsTheID(t *testing.T) {
	for _, id := range []string{"", "-", "a", store.SessionID("", drawn), "abcdefghijklmnop", "web-abcdefghi1", "web_abcdefghij", "web-abcdefghijk",
		"seventeen-charact-abcdefghij", "w b-abcdefghij", "wéb-abcdefghij"} {
		if got := store.NodeName(id); got != id {
			t.Errorf("%q has the name %q", id, got)
		}
	}
}

// Ids stand in keys, and in subjects as one token.
func TestSessionID_IsAShortTokenWhateverTheName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringN(0, 300, -1)).Draw(t, "name")
		id := store.SessionID(name, drawn)
		if len(id) > 27 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("%q is no token of a subject", id)
		}
		if again := store.SessionID(store.NodeName(id), drawn); name != "" && again != id {
			t.Errorf("the name %q in %q makes %q", store.NodeName(id), id, again)
		}
	})
}
