package apply_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"taskledger/collections"
	"taskledger/collections/apply"
	"taskledger/schedule"
)

// machine applies files to a cluster, and says what has to be there.
type machine struct {
	*cluster
	others map[string]string // schedules that are no collections
	last   *apply.File       // that the cluster has; nil = an apply has died half way since
	newest string            // hash of the file that was recorded last
	files  int               // that were recorded
}

func draw(t *rapid.T) apply.File {
	var list []string
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
	for _, name := range rapid.SliceOfDistinct(names, rapid.ID).Draw(t, "names") {
		list = append(list, fmt.Sprintf("{name: %s, attempts: %d}", name, rapid.IntRange(1, 2).Draw(t, "attempts")))
	}
	text := "sources: {s: {driver: noop, collections: ["
	for i, c := range list {
		if i > 0 {
			text += ", "
		}
		text += c
	}
	f, _, err := apply.Read("sync.yaml", []byte(text+"]}}"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// applied notes that a file was applied to its end. Two that apply one file at the same time record it once, or twice.
func (m *machine) applied(t *rapid.T, f *apply.File) {
	hash, n := m.recorded(t)
	if hash != f.Hash || n < m.files || n > m.files+1 {
		t.Fatalf("%d files are recorded after %d, the last one %s, want %s", n, m.files, hash, f.Hash)
	}
	m.last, m.newest, m.files = f, hash, max(n, m.files)
}

// differ counts the collections of the file that are not as it says, and those that are not in it.
func (m *machine) differ(f *apply.File) (n int) {
	is, want := m.state(), wanted(f)
	for id, definition := range want {
		if is[id] != definition {
			n++
		}
	}
	for id := range is {
		if want[id] == "" && m.others[id] == "" {
			n++
		}
	}
	return n
}

// Apply applies a file, without a command for what is the same.
func (m *machine) Apply(t *rapid.T) {
	f := draw(t)
	p, differ, changes := newProcess(m.cluster), m.differ(&f), m.changes
	newest := m.newest == f.Hash
	if newest && m.last != nil && differ > 0 {
		t.Fatalf("%d collections are not as the newest file says", differ)
	}
	done, err := p.apply(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	updates := 1
	if newest && differ == 0 {
		updates = 0
	}
	if n := len(done.Changes) - done.Counts()[collections.Same]; n != differ || m.changes-changes != differ ||
		p.commands != differ+updates || done.Recorded != (updates == 1) {
		t.Fatalf("%s, %d commands, %d changes, where %d differ", summary(done), p.commands, m.changes-changes, differ)
	}
	m.applied(t, &f)
}

// Die applies a file, and dies at some call, before or after it was carried out.
func (m *machine) Die(t *rapid.T) {
	f := draw(t)
	p, was := newProcess(m.cluster), m.state()
	dies := func(at int) func(int) error {
		return func(n int) error {
			if n >= at {
				return errDied
			}
			return nil
		}
	}
	if rapid.Bool().Draw(t, "before") {
		p.before = dies(rapid.IntRange(1, 20).Draw(t, "call"))
	} else {
		p.after = dies(rapid.IntRange(1, 6).Draw(t, "command"))
	}
	_, err := p.apply(t.Context(), f)
	if err == nil {
		m.applied(t, &f)
		return
	}
	if !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	want := wanted(&f)
	for id, definition := range m.state() {
		if definition != was[id] && definition != want[id] {
			t.Fatalf("%s is %s", id, definition)
		}
	}
	if !maps.Equal(m.state(), was) {
		m.last = nil
	}
	if hash, n := m.recorded(t); hash != m.newest || n > m.files { // it was recorded, and the answer is lost
		if hash != f.Hash || m.differ(&f) > 0 {
			t.Fatalf("%s is recorded, and is not there whole", hash)
		}
		m.applied(t, &f)
	}
}

// Overtake applies a file in the midst of another, which ends after it.
func (m *machine) Overtake(t *rapid.T) {
	outer, inner := draw(t), draw(t)
	p, q := newProcess(m.cluster), newProcess(m.cluster)
	at := rapid.IntRange(1, 20).Draw(t, "call")
	p.before = func(call int) error {
		if call != at {
			return nil
		}
		_, err := q.apply(t.Context(), inner)
		if err == nil {
			m.applied(t, &inner)
		}
		return err
	}
	if _, err := p.apply(t.Context(), outer); err != nil {
		t.Fatal(err)
	}
	m.applied(t, &outer)
}

// Check compares the cluster with what has to be there.
func (m *machine) Check(t *rapid.T) {
	if m.last != nil {
		wantState(t, m.cluster, m.last, m.others)
	}
	for name, definition := range m.others {
		if m.state()[name] != definition {
			t.Fatalf("schedule %s was changed", name)
		}
	}
	if hash, n := m.recorded(t); hash != m.newest || n != m.files {
		t.Fatalf("%d files are recorded, the last one %s; want %d, %s", n, hash, m.files, m.newest)
	}
}

// Whatever files are applied, whatever dies and whatever is applied meanwhile: the cluster has what the last file says.
func TestApply_LeavesWhatTheLastFileSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{cluster: newCluster()}
		m.put("nightly", schedule.Definition{Behavior: "noop", Cron: "@daily"})
		m.put("s_x", schedule.Definition{Behavior: "sleep"})
		m.others = m.state()
		t.Repeat(map[string]func(*rapid.T){
			"apply":    m.Apply,
			"die":      m.Die,
			"overtake": m.Overtake,
			"":         m.Check,
		})
	})
}
