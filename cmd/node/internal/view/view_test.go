package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/view"
	"taskledger/store"
)

func TestNodes_TellHowFarAClockIsOff(t *testing.T) {
	for ahead, want := range map[int64]string{0: "-", 3_600_000: "1h0m0s ahead", -1_500: "1.5s behind"} {
		v := view.OfNode(store.NodeInfo{ClockAhead: ahead})
		if got := view.Clock(v.ClockAheadMs); got != want {
			t.Errorf("%d ms ahead: %q, want %q", ahead, got, want)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if shown := strings.Contains(string(text), "clock_ahead_ms"); shown != (ahead != 0) {
			t.Errorf("%d ms ahead: %s", ahead, text)
		}
	}
}
