package ledger

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/ledger/exportform"
	"taskledger/projection"
)

// exportedTask is the task whose history exported exports.
const exportedTask events.TaskID = "task"

// written returns the stored entries of a shard in which one task is created, started and done, and another one
// created.
func written(t testing.TB) (all [][]byte) {
	t.Helper()
	policy, err := events.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	state := projection.NewShard(0)
	for _, ev := range []events.Event{
		{Task: exportedTask, Body: &events.Created{Behavior: "b", Policy: policy, NotBefore: 1}},
		{Task: exportedTask, Body: &events.Started{Node: "n-1", Attempt: 1}},
		{Task: "neighbour", Body: &events.Created{Behavior: "b", Policy: policy, NotBefore: 1}},
		{Task: exportedTask, Body: &events.Succeeded{Result: events.JSON([]byte("1")), Run: 1}},
	} {
		var b events.Builder
		b.Reset(events.Entry{Number: state.Number + 1, Epoch: 1, Owner: "owner", Time: events.Millis(1000 + state.Number), Prev: state.Hash})
		b.AddOrigin(events.Origin{Sender: "s", Lane: 1, Number: state.Number + 1, Answers: []byte{1}})
		if before := state.Task(ev.Task); before != nil {
			ev.Seq, ev.Prev = before.Seq+1, before.Last
		} else {
			ev.Seq = 1
		}
		b.Add(ev)
		data, err := b.Seal()
		if err != nil {
			t.Fatal(err)
		}
		e, err := events.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := state.Replay(e); err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

// exported is an export of a shard of some entries, its checkpoint, and one of a task in them.
func exported(t testing.TB) (shard, task string, kept Checkpoint) {
	t.Helper()
	stored := written(t)
	var whole, one bytes.Buffer
	w, o := json.NewEncoder(&whole), json.NewEncoder(&one)
	header := exportform.Header{Format: exportform.Format, Version: exportform.Version, Cluster: "c", From: 1}
	lines := []exportform.Line{}
	excerpts := []exportform.Line{}
	for _, data := range stored {
		lines = append(lines, exportform.Line{Entry: data})
		x, err := events.NewExcerpt(data, func(ev *events.Event) bool { return ev.Task == exportedTask })
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Shown) > 0 {
			excerpts = append(excerpts, exportform.Line{Head: x.Head, Digests: x.Digests, Origins: x.Origins, Shown: x.Shown})
			continue
		}
		link := x.Link()
		excerpts = append(excerpts, exportform.Line{Link: &link.Head, Digests: link.Digests})
	}
	last, err := events.Decode(stored[len(stored)-1])
	if err != nil {
		t.Fatal(err)
	}
	end := exportform.Line{End: last.Number, Hash: &last.Hash}
	encode := func(to *json.Encoder, all ...any) {
		for _, v := range all {
			if err := to.Encode(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	encode(w, header)
	for i := range lines {
		encode(w, lines[i])
	}
	encode(w, end)
	header.Task = exportedTask
	encode(o, header)
	for i := range excerpts {
		encode(o, excerpts[i])
	}
	encode(o, end)
	return whole.String(), one.String(), Checkpoint{Cluster: "c", Heads: []CheckpointHead{{Entry: last.Number, Hash: last.Hash}}}
}

// FuzzVerifyExport verifies any file against a checkpoint of a genuine one: nothing but the genuine entries is
// accepted.
func FuzzVerifyExport(f *testing.F) {
	shard, task, kept := exported(f)
	genuine, err := VerifyExport(strings.NewReader(shard), kept)
	if err != nil || genuine.Damage != "" || genuine.Heads != 1 {
		f.Fatalf("the genuine export: %+v, %v", genuine, err)
	}
	if v, err := VerifyExport(strings.NewReader(task), kept); err != nil || v.Damage != "" || v.Events != 3 {
		f.Fatalf("the genuine export of a task: %+v, %v", v, err)
	}
	f.Add(shard)
	f.Add(task)
	f.Add(strings.Replace(shard, `"from":1`, `"from":2`, 1))
	f.Fuzz(func(t *testing.T, file string) {
		v, err := VerifyExport(strings.NewReader(file), kept)
		if err != nil || v.Damage != "" || v.Heads == 0 {
			return
		}
		want := genuine.Events
		if v.Task != "" {
			want = 3
		}
		if v.From == 1 && v.Entries == genuine.Entries && (v.Hash != genuine.Hash || v.Events > want || v.Task == "" && v.Events != want) {
			t.Errorf("accepted: %+v, the genuine one is %+v", v, genuine)
		}
	})
}

func TestVerifyExport_BombsCostLittle(t *testing.T) {
	headerOf := func(task events.TaskID) string {
		text, err := json.Marshal(exportform.Header{
			Format:  exportform.Format,
			Version: exportform.Version,
			Cluster: "c",
			Task:    task,
			From:    1,
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	header, ofTask := headerOf(""), headerOf("a")
	for _, alone := range []string{header, ofTask} { // else no bomb behind it is looked at
		if v, err := VerifyExport(strings.NewReader(alone)); err != nil || v.Damage != DamageMissing {
			t.Fatalf("a header alone: %+v, %v", v, err)
		}
	}
	const size = 2 << 20
	fill := func(before, element, after string) string {
		return before + strings.Repeat(element+",", size/(len(element)+1)) + element + after
	}
	bombs := map[string]string{
		"arrays in arrays":     header + strings.Repeat("[", size),
		"objects in objects":   header + strings.Repeat(`{"a":`, size/5),
		"unknown arrays":       header + fill(`{"x":[`, "[]", "]}"),
		"empty events":         ofTask + fill(`{"head":"AAAA","shown":[`, "{}", "]}"),
		"events that are none": ofTask + fill(`{"head":"AAAA","shown":[`, "null", "]}"),
		"events of nothing":    ofTask + fill(`{"head":"AAAA","shown":[`, `{"index":0}`, "]}"),
		"most events":          ofTask + `{"head":"AAAA","shown":[` + strings.Repeat(`{"index":0},`, events.MaxEntryBytes/8-1) + `{"index":0}]}`,
		"numbers as bytes":     header + fill(`{"entry":[`, "1", "]}"),
		"digests":              ofTask + `{"link":"` + strings.Repeat("00", 32) + `","digests":"` + strings.Repeat("A", size/4*4) + `"}`,
		"an entry":             header + `{"entry":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x91}, size/4*3)) + `"}`,
		"one line":             header + strings.Repeat("a", 2*exportform.MaxLine),
		"one header":           strings.Repeat("a", 2*exportform.MaxLine),
		"one key often":        header + `{` + strings.Repeat(`"end":1,`, size/8) + `"end":1}`,
	}
	for _, name := range slices.Sorted(maps.Keys(bombs)) { // what one leaves in pools makes the next one cheaper
		file := bombs[name]
		err := testkit.Bounded(t, testkit.Bomb{Name: name, Data: []byte(file), Passes: 80}, func(b []byte) error {
			v, err := VerifyExport(bytes.NewReader(b))
			if behind := bytes.HasPrefix(b, []byte("{")); (err == nil) != behind {
				t.Errorf("%s: %+v, %v; want damage behind a header that is taken, or an error without one", name, v, err)
			}
			if err == nil && v.Damage == "" {
				return nil
			}
			return errors.New("refused")
		})
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
