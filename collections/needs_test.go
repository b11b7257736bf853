package collections_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"taskledger/collections"
)

func TestNeeds_AreWhatANodeMustHave(t *testing.T) {
	for keys, want := range map[string]string{
		"driver: noop": "[]",
		"driver: noop, schedule: '@daily', timezone: Europe/Berlin": "[timezone Europe/Berlin]",
		"driver: noop, timezone: Europe/Berlin":                     "[]",
		"driver: noop, schedule: '@daily'":                          "[]",
		"driver: 'go:my-api'":                                       "[driver my-api]",
		"driver: exec, program: p, env: {TZ: x, B: y}, args: [a]":   "[program p variable B variable TZ]",
		"driver: fetch, url: 'http://x/', to: y":                    "[sync-root ]",
		"driver: fetch, path: x, to: y, schedule: '@daily'":         "[sync-root  checksum-root ]",
	} {
		file := parse(t, "sources: {s: {collections: [{name: c, "+keys+"}]}}")
		needs := file.Collections[0].Needs()
		text := "["
		for i, n := range needs {
			if i > 0 {
				text += " "
			}
			text += fmt.Sprintf("%s %s", n.Kind, n.Name)
		}
		if text += "]"; text != want {
			t.Errorf("%s: %s, want %s", keys, text, want)
		}
		question, err := json.Marshal(needs)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := collections.ReadNeeds(question); err != nil || fmt.Sprint(read) != fmt.Sprint(needs) {
			t.Errorf("%s is read as %v: %v", question, read, err)
		}
	}
}
