package behaviors_test

import (
	"strings"
	"testing"

	"taskledger/behaviors"
	"taskledger/events"
)

// The ids are stored: a release that makes others would run again what has been done.
func TestHashID_IsTheSameForEver(t *testing.T) {
	for _, c := range []struct {
		affinity string
		parts    []string
		want     events.TaskID
	}{
		{"", nil, "4oymiquy7qobjgx36tejs35zeq"},
		{"", []string{""}, "v5kxb5nbqefxv54mv5f4octgb4"},
		{"", []string{"a", "bc"}, "h6x2dtzpdgt4ceu35mqm6cmd64"},
		{"", []string{"ab", "c"}, "maovi5xczt7czb5cxot2gitfs4"},
		{"tenant-1", []string{"Übersicht 2026", "purge"}, "tenant-1/pow64fulcfprkrsk7gtnfchvgw"},
		{"Mandant Süd", []string{"x"}, "jrckx6aw5pvzijsgijoasckziu/akhq35nylfx3zuims4qlpjdyj6"},
		{strings.Repeat("a", 65), []string{"x"}, "2t4btcccspargozjiakur4bei2/akhq35nylfx3zuims4qlpjdyj6"},
		{"a/b", []string{"x"}, "zhjkfaptj4jgnoouyaczmdn2bz/akhq35nylfx3zuims4qlpjdyj6"},
	} {
		got := behaviors.HashID(c.affinity, c.parts...)
		if got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.affinity, c.parts, got, c.want)
		}
		if err := got.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestHashID_KeepsAnAffinityTogether(t *testing.T) {
	for _, affinity := range []string{"tenant-1", "Mandant Süd"} {
		a, b := behaviors.HashID(affinity, "x"), behaviors.HashID(affinity, "y")
		if a == b || a.Affinity() != b.Affinity() {
			t.Errorf("%q: %s and %s", affinity, a, b)
		}
	}
}
