package demo

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// begin collects files of the given names, each holding its name, with outcomes as if every task had succeeded.
func begin(t *testing.T, names ...string) *run {
	t.Helper()
	r := &run{root: t.TempDir()}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(r.root, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, unseen, err := collect(r.root)
	if err != nil || len(unseen) > 0 || len(files) != len(names) {
		t.Fatalf("collected %d files, %v, %v", len(files), unseen, err)
	}
	r.files = files
	for _, f := range files {
		sum, err := f.sum(r.root)
		if err != nil {
			t.Fatal(err)
		}
		r.outcomes = append(r.outcomes, outcome{sum: sum})
	}
	return r
}

func TestCheck_NamesFilesThatChangedOrVanishedApart(t *testing.T) {
	r := begin(t, "changed", "replaced", "same", "touched", "vanished")
	at := func(name string) string { return filepath.Join(r.root, name) }
	err := errors.Join(
		os.WriteFile(at("changed"), []byte("something longer"), 0o600),
		os.Remove(at("replaced")), os.Mkdir(at("replaced"), 0o700),
		os.Chtimes(at("touched"), time.Time{}, time.Now().Add(time.Hour)),
		os.Remove(at("vanished")))
	if err != nil {
		t.Fatal(err)
	}
	found := r.check(nil)
	if found.right != 1 || len(found.wrong) != 0 || len(found.failed) != 0 ||
		!slices.Equal(found.changed, []string{"changed", "replaced", "touched"}) || !slices.Equal(found.vanished, []string{"vanished"}) {
		t.Errorf("found %+v", found)
	}
}

func TestCheck_FindsAWrongChecksumAndAFailedTask(t *testing.T) {
	r := begin(t, "failed", "right", "wrong")
	r.outcomes[0] = outcome{err: errors.New("cannot read")}
	r.outcomes[2].sum = r.outcomes[1].sum
	found := r.check(nil)
	if found.right != 1 || len(found.wrong) != 1 || len(found.failed) != 1 {
		t.Errorf("found %+v", found)
	}
}
