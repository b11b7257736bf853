package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"taskledger/internal/testcluster"
)

func TestProve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--name", "a", "--ttl", "3s")
	must(t, dir, "submit", "sleep", `{"duration":"1ms"}`, "--id", "told/1", "--wait")
	must(t, dir, "submit", "noop", "--id", "told/2", "--wait")
	for name, test := range map[string]func(*testing.T, string){
		"State_AtATimeAndAfterAnEvent":           stateOfThePast,
		"History_SurvivesDelete":                 historySurvivesDelete,
		"Replay_PrintsSelectedEventsInOrder":     replaySelects,
		"Export_IsVerifiedOfflineAndDamageFound": exportIsVerified,
		"Export_IsTrustedByTheKeptCheckpoint":    exportIsTrustedByCheckpoint,
		"Checkpoint_IsSignedAndVerified":         checkpointIsVerified,
		"ExitCodes":                              proveExitCodes,
	} {
		t.Run(name, func(t *testing.T) { test(t, dir) })
	}
}

func stateOfThePast(t *testing.T, dir string) {
	for seq, status := range map[string]string{"1": "CREATED", "2": "RUNNING", "3": "SUCCESS"} {
		got := objects(t, must(t, dir, "state", "told/1", "--seq", seq, "-o", "json"))
		if len(got) != 1 || got[0]["status"] != status || got[0]["params"].(map[string]any)["duration"] != "1ms" {
			t.Errorf("after event %s: %v", seq, got)
		}
	}
	if got := must(t, dir, "state", "told/1", "--at", time.Now().Add(time.Minute).UTC().Format(time.RFC3339)); !strings.Contains(got, "SUCCESS") {
		t.Errorf("by now: %s", got)
	}
	if r := run(t, dir, "state", "told/1", "--at", "2020-01-01T00:00:00Z"); r.code != 3 {
		t.Errorf("before its creation: %+v", r)
	}
	for _, ask := range [][]string{{"state", "told/1", "--at"}, {"replay", "--until"}} { // that time means that there is none
		if r := run(t, dir, append(ask, "1970-01-01T00:00:00Z")...); r.code != 2 || r.out != "" || !strings.Contains(r.err, "want a time after") {
			t.Errorf("%v 1970: %+v", ask, r)
		}
	}
}

func historySurvivesDelete(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "gone", "--wait")
	must(t, dir, "delete", "gone")
	if got := must(t, dir, "history", "gone"); !strings.Contains(got, "Succeeded") || !strings.Contains(got, "Deleted") {
		t.Errorf("history: %s", got)
	}
}

func replaySelects(t *testing.T, dir string) {
	var got []string
	for _, e := range objects(t, must(t, dir, "replay", "--behavior", "sleep")) {
		got = append(got, e["task"].(string)+" "+e["kind"].(string))
	}
	if want := []string{"told/1 Created", "told/1 Started", "told/1 Succeeded"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if r := run(t, dir, "replay", "--since", "2999-01-01T00:00:00Z"); r.code != 0 || r.out != "" {
		t.Errorf("the future: %+v", r)
	}
	first := objects(t, must(t, dir, "replay", "--task", "told/1"))[0]["position"].(string)
	shard, _, _ := strings.Cut(first, ".")
	since := objects(t, must(t, dir, "replay", "--after", first, "--since", "2999-01-01T00:00:00Z"))
	for _, e := range since {
		if at := e["position"].(string); !strings.HasPrefix(at, shard+".") || at == first {
			t.Errorf("after %s, and of other shards from a time to come: %v", first, e)
		}
	}
	if len(since) < 5 { // two of told/1, three of told/2
		t.Errorf("after %s: %v", first, since)
	}
	if got := objects(t, must(t, dir, "replay", "--task", "told/2", "--status", "SUCCESS", "--until", "2999-01-01T00:00:00Z")); len(got) != 1 {
		t.Errorf("%v, want one success", got)
	}
}

func exportIsVerified(t *testing.T, dir string) {
	elsewhere := t.TempDir() // where no node runs
	key, file := filepath.Join(elsewhere, "key"), filepath.Join(elsewhere, "told.export")
	public := must(t, dir, "checkpoint", "new-key", key)
	stranger := must(t, dir, "checkpoint", "new-key", filepath.Join(elsewhere, "other"))
	must(t, dir, "export", "--task", "told/1", "--signing-key", key, "--out", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "told/2") {
		t.Error("the export tells of a neighbour")
	}
	if got := must(t, elsewhere, "verify", file, "--trust", public); !strings.Contains(got, "signed by taskledger+") {
		t.Errorf("verified: %s", got)
	}
	if got := must(t, elsewhere, "verify", file); !strings.Contains(got, "not checked") {
		t.Errorf("without a key: %s", got)
	}
	if r := run(t, elsewhere, "verify", file, "--trust", stranger); r.code != 1 {
		t.Errorf("with another key: %+v", r)
	}
	shown := run(t, elsewhere, "verify", file, "--show", "--trust", public)
	if history := must(t, dir, "history", "told/1", "-o", "json"); shown.code != 0 || strings.TrimSpace(shown.out) != history || !strings.Contains(shown.err, "signed by taskledger+") {
		t.Errorf("its events: code %d, printed %s, %s; want %s", shown.code, shown.out, shown.err, history)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"payload":"A`, `"payload":"B`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, elsewhere, "verify", file, "--trust", public); r.code != 1 || !strings.Contains(r.out, "garbled") {
		t.Errorf("damaged: %+v", r)
	}
	whole := filepath.Join(elsewhere, "shard.export")
	for shard := 0; run(t, dir, "export", "--shard", strconv.Itoa(shard), "--out", whole).code != 0; shard++ {
		if shard == 16 {
			t.Fatal("no shard can be exported")
		}
	}
	if got := must(t, elsewhere, "verify", whole); !strings.Contains(got, "unsigned") {
		t.Errorf("a shard: %s", got)
	}
	if r := run(t, elsewhere, "verify", whole, "--trust", must(t, elsewhere, "checkpoint", "new-key", filepath.Join(elsewhere, "key-of-another"))); r.code == 0 || !strings.Contains(r.err, "not signed") {
		t.Errorf("an unsigned export where a signature is asked for: %+v", r)
	}
}

// An export that has no signature of its own is trusted as far as a signed checkpoint covers it.
func exportIsTrustedByCheckpoint(t *testing.T, dir string) {
	own := t.TempDir()
	in := func(name string) string { return filepath.Join(own, name) }
	public, stranger := must(t, dir, "checkpoint", "new-key", in("key")), must(t, dir, "checkpoint", "new-key", in("other"))
	must(t, dir, "submit", "noop", "--id", "covered/1", "--wait")
	if err := os.WriteFile(in("kept"), []byte(must(t, dir, "checkpoint", "--signing-key", in("key"))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "export", "--task", "covered/1", "--checkpoint", in("kept"), "--out", in("plain"))
	must(t, dir, "export", "--task", "covered/1", "--checkpoint", in("kept"), "--signing-key", in("other"), "--out", in("signed"))
	must(t, dir, "delete", "covered/1")
	must(t, dir, "export", "--task", "covered/1", "--checkpoint", in("kept"), "--out", in("longer"))
	for _, c := range []struct {
		file, trust string
		code        int
		says        string
	}{
		{"plain", public, 0, "not signed itself; the checkpoint covers it"},
		{"plain", stranger, 1, "checkpoint"},
		{"signed", public, 1, "checkpoint of the export"},
		{"longer", public, 1, "came after the checkpoint"},
	} {
		if r := run(t, own, "verify", in(c.file), "--checkpoint", in("kept"), "--trust", c.trust); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%s, trusting %s: %+v, want code %d and %q", c.file, c.trust, r, c.code, c.says)
		}
	}
	if r := run(t, own, "verify", in("plain"), "--trust", public); r.code != 1 || !strings.Contains(r.err, "not signed") {
		t.Errorf("without the checkpoint: %+v", r)
	}
	if r := run(t, dir, "nodes", "--expect-cluster", "other"); r.code != 5 {
		t.Errorf("of another cluster: %+v", r)
	}
}

func checkpointIsVerified(t *testing.T, dir string) {
	own := t.TempDir()
	var noted struct {
		Cluster, Note string
		Heads         []struct{ Entry int }
	}
	if err := json.Unmarshal([]byte(must(t, dir, "checkpoint", "-o", "json")), &noted); err != nil || len(noted.Heads) == 0 ||
		!strings.Contains(noted.Note, noted.Cluster) {
		t.Errorf("as JSON: %+v, %v", noted, err)
	}
	key, next, kept := filepath.Join(own, "key"), filepath.Join(own, "next"), filepath.Join(own, "kept")
	old := must(t, dir, "checkpoint", "new-key", key, "--name", "ledger.example")
	newer := must(t, dir, "checkpoint", "new-key", next, "--name", "ledger.example")
	both, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	more, err := os.ReadFile(next)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, append(both, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	signed := must(t, dir, "checkpoint", "--signing-key", key) + "\n"
	if err := os.WriteFile(kept, []byte(signed), 0o600); err != nil {
		t.Fatal(err)
	}
	unsigned := filepath.Join(own, "unsigned")
	if err := os.WriteFile(unsigned, []byte(must(t, dir, "checkpoint")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, dir, "verify", "--checkpoint", unsigned); r.code != 0 || !strings.Contains(r.err, "unsigned") {
		t.Errorf("against an unsigned checkpoint: %+v", r)
	}
	must(t, dir, "submit", "noop", "--id", "told/3", "--wait")
	for _, trust := range []string{old, newer, old + "," + newer} {
		if r := run(t, dir, "verify", "--with-archive", "--checkpoint", kept, "--trust", trust); r.code != 0 || !strings.Contains(r.err, "signed by ledger.example+") {
			t.Errorf("trusting %s: %+v", trust, r)
		}
	}
	text := signed[:strings.Index(signed, "\n\n")]
	last := strings.Fields(text[strings.LastIndexByte(text, '\n')+1:]) // shard, entry, hash, and form and digest of the state
	if len(last) != 5 {
		t.Fatalf("the last line of a checkpoint is %q", last)
	}
	i := strings.LastIndex(text, last[2])
	for _, row := range []struct{ text, trust, problem string }{
		{signed[:i] + strings.Repeat("0", 64) + signed[i+64:], old, "no signature of a trusted key"},
		{signed[:i] + strings.Repeat("0", 64) + "\n", "", "differs from history"},
		{strings.Replace(signed, " ", "  ", 1), "", "want"},
	} {
		if err := os.WriteFile(kept, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"verify", "--checkpoint", kept}
		if row.trust != "" {
			args = append(args, "--trust", row.trust)
		}
		if r := run(t, dir, args...); r.code == 0 || !strings.Contains(r.out+r.err, row.problem) {
			t.Errorf("want %q: %+v", row.problem, r)
		}
	}
}

func proveExitCodes(t *testing.T, dir string) {
	own := t.TempDir()
	if r := run(t, dir, "replay", "--behavior", "nobody"); r.code != 0 || r.out != "" || !strings.Contains(r.err, "no such event") {
		t.Errorf("replay of a behavior that there is not: %+v", r)
	}
	if r := run(t, dir, "replay", "--task", "nobody"); r.code != 3 || r.out != "" || !strings.Contains(r.err, "replay of nobody: no such task") {
		t.Errorf("replay of nobody: %+v", r)
	}
	write(t, filepath.Join(own, "no-export"), "text\n")
	if r := run(t, own, "verify", "no-export"); r.code != 2 || !strings.Contains(r.err, "no-export: file: not an export") {
		t.Errorf("verify of another file: %+v", r)
	}
	noKey, kept := filepath.Join(own, "no-key"), filepath.Join(own, "kept")
	for file, text := range map[string]string{noKey: "no key\n", kept: must(t, dir, "checkpoint")} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for code, all := range map[int][][]string{
		2: {
			{"state", "told/1"}, {"state", "told/1", "--at", "noon"}, {"state", "told/1", "--at", "2020-01-01T00:00:00Z", "--seq", "1"},
			{"replay", "--since", "noon"}, {"replay", "--status", "DONE"}, {"replay", "--task", "no blanks"},
			{"export"}, {"export", "--task", "x", "--shard", "1"}, {"export", "--shard", "16"}, {"export", "--task", "no blanks"},
			{"verify", "no-such-file"}, {"verify", "--checkpoint", "no-such-file"}, {"verify", dir, "--with-archive"}, {"verify", "--show"},
			{"verify", "--checkpoint", noKey}, {"verify", "--checkpoint", noKey, "--trust", "no-key"}, {"verify", "--trust", "a-key"},
			{"state", "told/1", "--seq", "0"}, {"replay", "--since", "2026-11-23T00:00:00Z", "--until", "2026-11-22T00:00:00Z"}, {"verify", "--checkpoint", kept, "--trust", "no-key"},
			{"checkpoint", "--signing-key", noKey}, {"checkpoint", "--signing-key", "no-such-file"}, {"export", "--task", "told/1", "--signing-key", noKey},
		},
		3: {{"state", "nobody", "--seq", "1"}, {"state", "told/1", "--seq", "9"}, {"export", "--task", "nobody"}},
	} {
		for _, args := range all {
			if r := run(t, dir, args...); r.code != code || r.out != "" || r.err == "" {
				t.Errorf("%q: %+v, want code %d", args, r, code)
			}
		}
	}
}

// What nobody serves is verified all the same, without a wait for whoever might.
func TestVerify_EndsWhileNoShardIsServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	etcd, _ := testcluster.StartEtcd(t)
	n := serve(t, dir, "--etcd", etcd, "--archive", "keep", "--ttl", "3s")
	must(t, dir, "submit", "noop", "--id", "x", "--wait", "--etcd", etcd)
	n.stop(t)
	if got := must(t, dir, "verify", "--etcd", etcd); !strings.Contains(got, "ENTRIES") {
		t.Errorf("got %s", got)
	}
}
