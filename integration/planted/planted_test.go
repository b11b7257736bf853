package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

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

// Servers that stop slowly break invariant 13, and none of the rules is about what remains.
func TestList_NamesWhatMayNoticeABug(t *testing.T) {
	can := []string{noEnd, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "14", "15", "16", "17", "18", "linear"}
	for _, p := range list {
		if len(p.by) == 0 {
			t.Errorf("%s: nothing may notice it", p.name)
		}
		for _, by := range p.by {
			if !slices.Contains(can, by) {
				t.Errorf("%s: %q cannot notice it", p.name, by)
			}
		}
	}
}

func TestParse_JoinsTheNameAndRefusesNonsense(t *testing.T) {
	o, err := parse([]string{"--most", "3", "retry", "counted"}, io.Discard)
	if err != nil || o.filter != "retry counted" || o.most != 3 {
		t.Errorf("parsed %+v, %v", o, err)
	}
	for _, args := range [][]string{{"--most", "-1"}, {"--limit", "0s"}, {"--harness", "none"}, {"--parallel", "0"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", slices.Clone(args))
		}
	}
}

func TestRun_OfNoBugFailsAndNamesTheFilter(t *testing.T) {
	for _, args := range [][]string{{"comit"}, {"--harness", real, "retry counted twice"}} {
		filter := args[len(args)-1]
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), filter) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestTable_HasARowForEachBug(t *testing.T) {
	rows := []row{
		{planted: &planted{name: "one"}, finding: finding{histories: 3, noticed: []string{"9", "10"}}, took: 4 * time.Second},
		{planted: &planted{name: "two", faults: "node-kill"}, finding: finding{histories: 200}, err: errNotFound},
	}
	var out strings.Builder
	if err := table(&out, rows, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| one | simulated | 3 | 9, 10 | 4 |\n", "| two | real | 200 | **not found** | 0 |\n", "1 of 2 found in 1m0s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if err := missed(rows); !errors.Is(err, errNotFound) || !strings.Contains(err.Error(), "two") || strings.Contains(err.Error(), "one,") {
		t.Errorf("missed: %v", err)
	}
}
