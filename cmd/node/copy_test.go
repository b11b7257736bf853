package main_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/filestore"
	"taskledger/filestore/filejournal"
)

// exported returns digests of the exports of tasks and of shard 0.
func exported(t *testing.T, dir string, access ...string) (all []string) {
	t.Helper()
	for _, of := range [][]string{{"--task", "first"}, {"--task", "bulk-1"}, {"--task", "bulk-77"}, {"--task", fmt.Sprint("bulk-", bulkTasks)}, {"--shard", "0"}} {
		text := must(t, dir, append(append([]string{"export"}, of...), access...)...)
		all = append(all, fmt.Sprintf("%s: %x", strings.Join(of, " "), sha256.Sum256([]byte(text))))
	}
	return all
}

func wantExported(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s exports\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// From the servers inside a node to files, where a node goes on, and back to the servers inside another one.
func TestCopy_OneWayAndBackExportsTheSameAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--store", "etcd", "--shards", "1", "--ttl", "3s")
	must(t, dir, "submit", "noop", "--id", "first", "--wait")
	mustLoad(t, dir, "bulk-", bulkTasks)
	trimmed(t, dir, 1)
	if r := run(t, dir, "copy", "--from", "etcd", "--to", "files"); r.code != 5 || !strings.Contains(r.err, "in use") {
		t.Errorf("while a node runs: code %d, %s", r.code, r.err)
	}
	want := exported(t, dir)
	n.stop(t)

	copied := objects(t, must(t, dir, "copy", "--from", "etcd", "--to", "files", "-o", "json"))
	if len(copied) != 1 || copied[0]["archived"].(float64) < 1 || copied[0]["snapshots"] != 2.0 || copied[0]["first"].(float64) < 2 {
		t.Errorf("copied %v", copied)
	}
	wantExported(t, "the directory", exported(t, dir, "--data", "files"), want)
	if again := objects(t, must(t, dir, "copy", "--from", "etcd", "--to", "files", "-o", "json")); again[0]["copied"] != 0.0 || again[0]["hash"] != copied[0]["hash"] {
		t.Errorf("copied again %v", again)
	}

	must(t, dir, "restore", "files", "--data", "back")
	m := serve(t, dir, "--store", "etcd", "--data", "back", "--ttl", "3s")
	wantExported(t, "the etcd that it was copied back to", exported(t, dir, "--data", "back"), want)
	wantClean(t, dir, 1, "--with-archive", "--data", "back")
	must(t, dir, "submit", "noop", "--id", "next", "--wait", "--data", "back")
	wantClean(t, dir, 1, "--with-archive", "--data", "back")
	if r := run(t, dir, "copy", "--from", "files", "--to", "etcd", "--data", "back"); r.code != 5 {
		t.Errorf("into a node that runs: code %d, %s", r.code, r.err)
	}
	m.stop(t)
	if r := run(t, dir, "copy", "--from", "files", "--to", "etcd", "--data", "back"); r.code != 5 || !strings.Contains(r.err, "the target holds what the source has not") {
		t.Errorf("into what has gone on: code %d, %s", r.code, r.err)
	}

	serve(t, dir, "--store", "files", "--data", "files")
	must(t, dir, "submit", "noop", "--id", "next", "--wait", "--data", "files")
	wantClean(t, dir, 1, "--with-archive", "--data", "files")
	if r := run(t, dir, "copy", "--from", "files", "--to", "other"); r.code != 5 || !strings.Contains(r.err, "in use") {
		t.Errorf("from a directory on which a node runs: code %d, %s", r.code, r.err)
	}
}

func TestCopy_SaysWhatIsWrongAndChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--store", "files", "--shards", "1", "--data", "files")
	must(t, dir, "submit", "noop", "--id", "first", "--wait", "--data", "files")
	n.stop(t)
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "full", "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("files", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"copy --from files", 2, "want --from and --to"},
		{"copy --from files --to files", 2, "want another directory"},
		{"copy --from files --to ./files/", 2, "want another directory"},
		{"copy --from files --to " + filepath.Join(dir, "files"), 2, "want another directory"},
		{"copy --from files --to link", 2, "want another directory"},
		{"copy --from link --to files", 2, "want another directory"},
		{"copy --from gone --to ./gone", 2, "want another directory"},
		{"copy --from etcd --to etcd", 2, "by way of a directory"},
		{"copy --from files --to other --archive jetstream", 2, "--archive jetstream"},
		{"copy --from files --to other --archive tape", 2, "--archive tape"},
		{"copy --from files --to other --durability lax", 2, "--durability lax"},
		{"copy --from files --to etcd --durability strict", 2, "--durability"},
		{"copy --from etcd --to other", 2, "no etcd is in ./taskledger-data"},
		{"copy --from files --to full", 5, "letter.txt"},
		{"copy --from gone --to other", 2, "no store in files is in gone"},
		{"copy --from files --to other --expect-cluster abc", 5, "abc was expected"},
		{"backup", 2, "arg"},
		{"restore", 2, "arg"},
	} {
		r := run(t, dir, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) || r.out != "" {
			t.Errorf("%s: code %d, want %d: %s", c.args, r.code, c.code, r.err)
		}
	}
	for _, made := range []string{"other", "taskledger-data", "gone"} {
		if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
			t.Errorf("%s is made", made)
		}
	}

	must(t, dir, "copy", "--from", "files", "--to", "other", "--durability", "opportunistic")
	if r := run(t, dir, "check", "--store", "files", "--data", "other"); !strings.Contains(r.out, "opportunistic") {
		t.Errorf("the copy is %s", r.out)
	}
}

// A copy that is cut off by its time is marked, refused by name, and ended by the next one.
func TestCopy_ThatIsCutOffIsRefusedByEveryCommandAndEndedByTheNextOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--store", "files", "--shards", "1", "--data", "files")
	must(t, dir, "submit", "noop", "--id", "first", "--wait", "--data", "files")
	n.stop(t)
	half(t, filepath.Join(dir, "files"), filepath.Join(dir, "half"))
	for _, args := range []string{"serve --store files", "verify", "export --task first", "history first", "check --store files"} {
		r := run(t, dir, append(strings.Fields(args), "--data", "half")...)
		if r.code == 0 || !strings.Contains(r.err+r.out, "not finished: run copy again") {
			t.Errorf("%s: code %d, %s%s", args, r.code, r.err, r.out)
		}
	}
	must(t, dir, "copy", "--from", "files", "--to", "half")
	must(t, dir, "verify", "--data", "half")
	must(t, dir, "history", "first", "--data", "half")
}

// half leaves in a directory the beginning of a copy of another one.
func half(t *testing.T, from, to string) {
	t.Helper()
	s, err := filestore.OpenToCopy(from, "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := filestore.Receive(to, s.Cluster(), from, filejournal.Options{})
	if err == nil {
		err = r.Begin(t.Context())
	}
	if err := errors.Join(err, r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}
