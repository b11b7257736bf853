package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"taskledger/api/view"
	"taskledger/events"
	"taskledger/store"
)

func TestNodes_TellWhatTheyRead(t *testing.T) {
	text, err := json.Marshal(view.OfNode(store.NodeInfo{Reads: store.Reads{Kind: events.KindDeleted, Entry: 7, Snapshot: 8, Rules: 9}}))
	if err != nil {
		t.Fatal(err)
	}
	if want := `"reads":{"kind":"Deleted","entry":7,"snapshot":8,"rules":9}`; !strings.Contains(string(text), want) {
		t.Errorf("shown as %s, want %s in it", text, want)
	}
}
