package ledger_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/ledger/exportform"
	"taskledger/store"
	"taskledger/task"
)

// exports returns an export of shard 1 and one of a task with neighbours between its events.
func exports(t *testing.T, p *past) (shard, task string, id events.TaskID) {
	t.Helper()
	id = testcluster.IDIn(1, pastShards)
	end := p.begin(id, "secret")
	p.spread(8)
	end()
	p.spread(2)
	var whole, one bytes.Buffer
	if err := p.node.Ledger().ExportShard(testcluster.Within(t), 1, &whole, nil); err != nil {
		t.Fatal(err)
	}
	sign := func(text string) (string, error) { return text + "signed", nil }
	if err := p.node.Ledger().ExportTask(testcluster.Within(t), id, &one, sign); err != nil {
		t.Fatal(err)
	}
	return whole.String(), one.String(), id
}

func TestExport_IsVerifiedWithoutACluster(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	shard, task, id := exports(t, p)
	served := verified(t, p.node.Client, ledger.VerifyOptions{})[1]
	v, err := ledger.VerifyExport(strings.NewReader(shard))
	if err != nil || v.Damage != "" || v.From != 1 || v.Entries != served.Entries || v.Hash != served.Hash || v.Events != served.Events || v.Task != "" {
		t.Errorf("the shard: %+v, %v; want what is served, %+v", v, err, served)
	}
	v, err = ledger.VerifyExport(strings.NewReader(task))
	if err != nil || v.Damage != "" || v.Task != id || v.Events != 3 || !strings.HasSuffix(v.Checkpoint, "signed") {
		t.Errorf("the task: %+v, %v", v, err)
	}
	kept, err := ledger.ParseCheckpoint(strings.TrimSuffix(v.Checkpoint, "signed"))
	if err != nil || len(kept.Heads) != 1 || kept.Heads[0] != (ledger.CheckpointHead{Shard: 1, Entry: v.Entries, Hash: v.Hash}) {
		t.Errorf("checkpoint %+v, %v, of %+v", kept, err, v)
	}
	if again := verified(t, p.node.Client, ledger.VerifyOptions{Against: []ledger.Checkpoint{kept}})[1]; again.Damage != "" || again.Heads != 1 {
		t.Errorf("the ledger against the checkpoint of the export: %+v", again)
	}
	neighbour := fmt.Sprint(id, "/n-1")
	if !strings.Contains(plain(shard), neighbour) || strings.Contains(plain(task), neighbour) {
		t.Errorf("%s is named in the shard's export: %t, in the task's: %t; want the first alone", neighbour,
			strings.Contains(plain(shard), neighbour), strings.Contains(plain(task), neighbour))
	}
	answers := 0
	for _, rec := range p.Records(1) {
		for _, o := range testcluster.Decoded(t, rec.Data).Origins {
			if len(o.Answers) < 8 { // says nothing
				continue
			}
			if answers++; strings.Contains(plain(task), string(o.Answers)) {
				t.Errorf("the task's export has the answers to all commands of batch %d", o.Number)
			}
		}
	}
	if answers == 0 {
		t.Error("no answer in the shard says anything")
	}
}

func TestExport_OfAShardWithoutEntriesSaysSo(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	err := p.node.Ledger().ExportShard(testcluster.Within(t), 1, new(bytes.Buffer), nil)
	if !errors.Is(err, task.ErrNotFound) || err.Error() != "export: shard 1 has no entry yet" {
		t.Errorf("error %v", err)
	}
}

// takenAt matches the time of a checkpoint.
var takenAt = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// What has left etcd is exported from the archive, alike.
func TestExport_OfWhatWasTrimmedIsTheSame(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	shard, task, id := exports(t, p)
	p.keep(1)
	c := p.reader(p.archive)
	var whole, one bytes.Buffer
	if err := c.Ledger().ExportShard(testcluster.Within(t), 1, &whole, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Ledger().ExportTask(testcluster.Within(t), id, &one, func(text string) (string, error) { return text + "signed", nil }); err != nil {
		t.Fatal(err)
	}
	for what, is := range map[string][2]string{"the shard": {whole.String(), shard}, "a task": {one.String(), task}} {
		if takenAt.ReplaceAllString(is[0], "") != takenAt.ReplaceAllString(is[1], "") {
			t.Errorf("%s: exported\n%s\nbefore the trim\n%s", what, is[0], is[1])
		}
	}
}

// An export of a shard or of a task shows what the ledger reports, and nothing after a damage.
func TestReadExport_ShowsWhatReplayTells(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	shard, task, id := exports(t, p)
	var told, ofTask []ledger.Event
	for ev, err := range p.node.Ledger().Replay(testcluster.Within(t), ledger.ReplayOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Position.Shard != 1 {
			continue
		}
		told = append(told, ev)
		if ev.Task == id {
			ofTask = append(ofTask, ev)
		}
	}
	if len(ofTask) != 3 || len(told) <= len(ofTask) || ofTask[1].Node == "" || ofTask[2].Behavior == "" {
		t.Fatalf("the ledger tells %d events, of the task %+v", len(told), ofTask)
	}
	read := func(text string) (shown []ledger.Event, v ledger.ExportVerification) {
		v, err := ledger.ReadExport(strings.NewReader(text), func(ev ledger.Event) error {
			shown = append(shown, ev)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return shown, v
	}
	if shown, v := read(shard); v.Damage != "" || v.Events != uint64(len(shown)) || len(shown) <= len(ofTask) || !reflect.DeepEqual(shown, told[:len(shown)]) {
		t.Errorf("the shard: %d events shown, %+v; want %d", len(shown), v, len(told))
	}
	if shown, v := read(task); v.Damage != "" || !reflect.DeepEqual(shown, ofTask) {
		t.Errorf("the task: %+v, want %+v", shown, ofTask)
	}
	lines := strings.SplitAfter(shard, "\n")
	if shown, v := read(strings.Join(slices.Delete(lines, 3, 4), "")); v.Damage != ledger.DamageMissing || len(shown) == 0 || len(shown) >= len(told) {
		t.Errorf("of a file without its third entry %d events are shown, %+v", len(shown), v)
	}
	last := told[len(ofTask)].Position.Ref.Entry()
	forged := ledger.Checkpoint{Heads: []ledger.CheckpointHead{{Shard: 1, Entry: last, Hash: events.Hash{1}}}}
	if v, err := ledger.VerifyExport(strings.NewReader(shard)); err != nil {
		t.Fatal(err)
	} else {
		forged.Cluster = v.Cluster
	}
	v, err := ledger.ReadExport(strings.NewReader(shard), func(ev ledger.Event) error {
		if ev.Position.Ref.Entry() >= last {
			t.Errorf("event %s is shown, and the checkpoint has another entry %d", ev.Position, last)
		}
		return nil
	}, forged)
	if err != nil || v.Damage != ledger.DamageCheckpoint {
		t.Errorf("another entry than the checkpoint has: %+v, %v", v, err)
	}
	enough := errors.New("enough")
	calls := 0
	if _, err := ledger.ReadExport(strings.NewReader(shard), func(ledger.Event) error { calls++; return enough }); !errors.Is(err, enough) || calls != 1 {
		t.Errorf("who does not want to see more is shown %d events, and ends with %v", calls, err)
	}
}

// plain is an export with its binary parts as they are.
func plain(export string) string {
	return regexp.MustCompile(`"[A-Za-z0-9+/]{4,}=*"`).ReplaceAllStringFunc(export, func(quoted string) string {
		decoded, err := base64.StdEncoding.DecodeString(strings.Trim(quoted, `"`))
		if err != nil {
			return quoted
		}
		return string(decoded)
	})
}

func TestExport_EveryDamageIsFound(t *testing.T) {
	t.Parallel()
	shard, task, _ := exports(t, newPast(t))
	for name, text := range map[string]string{"shard": shard, "task": task} {
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		found := func(what string, changed []string) {
			t.Helper()
			if v, err := ledger.VerifyExport(strings.NewReader(strings.Join(changed, ""))); err == nil && v.Damage == "" {
				t.Errorf("%s: %s was not found", name, what)
			}
		}
		for i := range lines {
			found(fmt.Sprint("line removed: ", i), slices.Delete(slices.Clone(lines), i, i+1))
			found(fmt.Sprint("line repeated: ", i), slices.Insert(slices.Clone(lines), i, lines[i]))
			if i+1 < len(lines) {
				swapped := slices.Clone(lines)
				swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
				found(fmt.Sprint("lines swapped: ", i), swapped)
			}
		}
		for i := range lines[1 : len(lines)-1] {
			line := lines[i+1]
			for j, c := range []byte(line) {
				if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZ", rune(c)) || line[j+1] == '=' || line[j+1] == '"' { // the last digits of base64 hold bits of nothing
					continue
				}
				changed := slices.Clone(lines)
				changed[i+1] = line[:j] + string('A'+(c-'A'+1)%26) + line[j+1:]
				found(fmt.Sprintf("byte %d of line %d changed", j, i+1), changed)
			}
		}
	}
}

// Not even a flip that leaves the meaning, in the unused bits of base64, say, or in a name of JSON, or white space for
// the end of a line.
func TestExport_EveryFlippedBitIsFound(t *testing.T) {
	t.Parallel()
	_, task, _ := exports(t, newPast(t))
	name, _, _ := strings.Cut(task, `","shard"`)
	signed := strings.Index(task, `"checkpoint":"`)
	// The signed note, whose signature the caller checks, holds the cluster's id, too.
	for i := range signed {
		if i < len(name) && i >= strings.Index(task, `"cluster":"`)+len(`"cluster":"`) {
			continue
		}
		for bit := range 8 {
			if testing.Short() && bit != i%8 {
				continue
			}
			flipped := []byte(task)
			flipped[i] ^= 1 << bit
			if v, err := ledger.VerifyExport(bytes.NewReader(flipped)); err == nil && v.Damage == "" {
				t.Errorf("byte %d, bit %d: not found: %s", i, bit, flipped[max(0, i-20):min(len(task), i+20)])
			}
		}
	}
}

func TestExport_ForgedHistoryDiffersFromAKeptCheckpoint(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	kept, err := p.node.Ledger().Checkpoint(testcluster.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	forged, prev := p.Records(1), events.Hash{}
	for i := range forged {
		forged[i].Data = testcluster.Forged(t, forged[i].Data, prev, "1000000")
		prev = testcluster.Decoded(t, forged[i].Data).Hash
	}
	p.Replace(1, forged)
	var file bytes.Buffer
	if err := p.unserved(nil).Ledger().ExportShard(testcluster.Within(t), 1, &file, nil); err != nil {
		t.Fatal(err)
	}
	if v, err := ledger.VerifyExport(bytes.NewReader(file.Bytes())); err != nil || v.Damage != "" {
		t.Errorf("alone: %+v, %v", v, err)
	}
	v, err := ledger.VerifyExport(bytes.NewReader(file.Bytes()), kept)
	if err != nil {
		t.Fatal(err)
	}
	wantDamage(t, v.Verification, ledger.DamageCheckpoint, forged[len(forged)-1].Number)
}

func TestExport_RefusesWhatItIsNot(t *testing.T) {
	t.Parallel()
	header := func(version int, from int) string {
		return fmt.Sprintf(`{"format":"taskledger export","version":%d,"cluster":"c","from":%d}`, version, from)
	}
	for text, want := range map[string]string{
		"":                              "not an export of taskledger",
		"\n":                            "not an export of taskledger",
		"{}":                            "not an export of taskledger",
		header(exportform.Version-1, 1): fmt.Sprintf("export version %d, this program reads %d", exportform.Version-1, exportform.Version),
		header(exportform.Version+1, 1): fmt.Sprintf("export version %d, this program reads %d", exportform.Version+1, exportform.Version),
		header(exportform.Version, 0):   "export from entry 0",
	} {
		var invalid *store.InvalidError
		if _, err := ledger.VerifyExport(strings.NewReader(text)); !errors.As(err, &invalid) || !strings.Contains(invalid.Problem, want) {
			t.Errorf("%q: %v, want an *InvalidError with %q", text, err, want)
		}
	}
	if v, err := ledger.VerifyExport(strings.NewReader(header(exportform.Version, 1))); err != nil || v.Damage == "" {
		t.Errorf("an export without a line: %+v, %v", v, err)
	}
}
