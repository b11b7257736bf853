package main

import (
	"io"
	"slices"
	"testing"

	"taskledger/integration/bugs"
)

func TestList_FitsTheCode(t *testing.T) {
	t.Chdir("../..")
	for _, p := range list {
		if _, err := bugs.Plant(t.TempDir(), p.of...); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

func TestList_HasEachBugOnceForAHarness(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list {
		if key := p.harness() + " " + p.name; seen[key] {
			t.Errorf("%s is there twice", key)
		} else {
			seen[key] = true
		}
	}
}

func TestParse_JoinsTheNameAndRefusesNonsense(t *testing.T) {
	o, err := parse([]string{"--most", "3", "retry", "counted"}, io.Discard)
	if err != nil || o.filter != "retry counted" || o.most != 3 {
		t.Errorf("parsed %+v, %v", o, err)
	}
	for _, args := range [][]string{{"--most", "-1"}, {"--limit", "0s"}, {"--harness", "none"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", slices.Clone(args))
		}
	}
}
