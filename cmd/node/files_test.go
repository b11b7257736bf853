package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	place "taskledger/internal/advertised"
)

// serveFiles starts a node whose store is in files, in the data directory of dir.
func serveFiles(t *testing.T, dir string, args ...string) *node {
	t.Helper()
	return serve(t, dir, append([]string{"--store", "files"}, args...)...)
}

// asked asks the API of the node on the data directory of dir, by its socket, and returns the answer of a status.
func asked(t *testing.T, dir, method, path, body string, want int) any {
	t.Helper()
	at, err := place.Read(filepath.Join(dir, "taskledger-data"))
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", at.Socket())
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+at.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != want {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.StatusCode, want, text)
	}
	var answer any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return answer
}

func submitTo(t *testing.T, dir, body string) {
	t.Helper()
	asked(t, dir, http.MethodPost, "/v1/tasks?wait=60s", body, http.StatusOK)
}

func statusIn(t *testing.T, dir, id string) any {
	t.Helper()
	return asked(t, dir, http.MethodGet, "/v1/tasks/"+id, "", http.StatusOK).(map[string]any)["status"]
}

func TestServe_InFilesLosesNothingWhenItIsKilled(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"strict", "opportunistic"} {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			const tasks = 20
			for run := range 3 {
				n := serveFiles(t, dir, "--durability", durability)
				for i := range tasks {
					submitTo(t, dir, fmt.Sprintf(`{"behavior":"noop","id":"%d-%d"}`, run, i))
				}
				n.signal(syscall.SIGKILL)
				n.wait(t)
				state := must(t, dir, "state", fmt.Sprintf("%d-0", run), "--at", "2200-01-01T00:00:00Z")
				if !strings.Contains(state, "SUCCESS") {
					t.Errorf("while no node runs: %s", state)
				}
			}
			n := serveFiles(t, dir) // the directory tells the durability
			for run := range 3 {
				for i := range tasks {
					if got := statusIn(t, dir, fmt.Sprintf("%d-%d", run, i)); got != "SUCCESS" {
						t.Errorf("task %d-%d: %v", run, i, got)
					}
				}
			}
			shards := asked(t, dir, http.MethodGet, "/v1/shards", "", http.StatusOK).(map[string]any)["shards"].([]any)
			if got := shards[0].(map[string]any)["durability"]; got != durability {
				t.Errorf("the shards are %v", got)
			}
			n.stop(t)
			if !n.cmd.ProcessState.Success() {
				t.Errorf("ended with %s: %s", n.cmd.ProcessState, n.stderr.String())
			}
			for _, v := range objects(t, must(t, dir, "verify", "--with-archive", "-o", "json")) {
				if v["problem"] != nil && v["problem"] != "" {
					t.Errorf("verify found %v", v)
				}
			}
			must(t, dir, "export", "--task", "0-0", "--out", "x.export")
			must(t, dir, "verify", "x.export")
		})
	}
}

// Whoever waits has the token of the node that has ended.
func TestSubmit_WaitsForATaskWhileTheNodeOnFilesStartsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serveFiles(t, dir)
	waits := inBackground(t, dir, "submit", "sleep", `{"duration":"1s"}`, "--id", "a", "--wait")
	eventually(t, "the task runs", func() bool {
		return strings.Contains(must(t, dir, "list"), "RUNNING")
	})
	n.signal(syscall.SIGKILL)
	n.wait(t)
	serveFiles(t, dir)
	if r := <-waits.ended; r.code != 0 || r.out != "a\n" {
		t.Errorf("%+v", r)
	}
}

func TestClient_WhereTheStoreIsInFilesSaysWhatToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serveFiles(t, dir)
	must(t, dir, "submit", "noop", "--wait")
	n.signal(syscall.SIGKILL)
	n.wait(t)
	r := run(t, dir, "list", "--await-node", "--timeout", "2s")
	if r.code != 4 || !strings.HasSuffix(r.err, " serve --store files\n") {
		t.Errorf("code %d: %q", r.code, r.err)
	}
	r = run(t, dir, "list", "--timeout", timeout.String())
	if r.code != 4 || strings.Count(r.err, "\n") != 1 || !strings.HasSuffix(r.err, " serve --store files\n") {
		t.Errorf("code %d: %q", r.code, r.err)
	}
}

func TestServe_InFilesSaysWhatItIsAndListensAtItsSocketAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serveFiles(t, dir, "--durability", "opportunistic", "--loss-bound", "200ms") // the API is off
	printed := strings.Join(n.printed, "\n")
	for _, want := range []string{"  files  opportunistic", "  data  "} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in %s", want, printed)
		}
	}
	if strings.Contains(printed, "etcd") || strings.Contains(printed, "  api") || len(n.commands) != 2 {
		t.Errorf("printed %s, %q", printed, n.commands)
	}
	at, err := place.Read(filepath.Join(dir, "taskledger-data"))
	if err != nil || at.Store != place.InFiles || at.Socket() == "" || at.URL != "" || at.Token == "" {
		t.Errorf("advertised %+v, %v", at, err)
	}
	n.stop(t)
	if _, err := place.Read(filepath.Join(dir, "taskledger-data")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}

func TestServe_InFilesHasTaskStoresSchedulesAndLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serveFiles(t, dir, "--exec-allow", "echo")
	submitTo(t, dir, `{"behavior":"exec","id":"says","params":{"program":"echo","args":["hello"]}}`)
	update := `{"clientid":1,"adds":[{"group":"kept","data":"aGk="}]}`
	asked(t, dir, http.MethodPost, "/store/default/update", update, http.StatusOK)
	nightly := `{"cron":"0 30 3 * * ?","timezone":"UTC","behavior":"noop","params":{}}`
	asked(t, dir, http.MethodPut, "/v1/schedules/nightly", nightly, http.StatusCreated)
	logged := func() bool {
		told := asked(t, dir, http.MethodGet, "/v1/tasks/says/logs", "", http.StatusOK)
		return strings.Contains(fmt.Sprint(told), "hello")
	}
	eventually(t, "what the program wrote is in the log of its task", logged)
	n.stop(t)
	serveFiles(t, dir)
	if !logged() {
		t.Error("the log is gone after a restart")
	}
	at := asked(t, dir, http.MethodGet, "/v1/schedules/nightly", "", http.StatusOK)
	if !strings.Contains(fmt.Sprint(at), "0 30 3") {
		t.Errorf("the schedule after a restart: %v", at)
	}
	groups := asked(t, dir, http.MethodGet, "/store/default/groups", "", http.StatusOK)
	if !strings.Contains(fmt.Sprint(groups), "kept") {
		t.Errorf("groups of the task store after a restart: %v", groups)
	}
}

// everything returns the files of a directory, apart from what tells of the present run, or of no run.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestServe_RefusesADirectoryThatItMayNotHaveAndChangesNothing(t *testing.T) {
	t.Parallel()
	files, used, servers, later, torn := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{files, later, torn} {
		serveFiles(t, dir, "--shards", "4").stop(t)
	}
	serveFiles(t, used)
	serve(t, servers).stop(t)
	data := func(dir string) string { return filepath.Join(dir, "taskledger-data") }
	format := filepath.Join(data(later), "format")
	text, err := os.ReadFile(format)
	if err == nil {
		err = os.WriteFile(format, bytes.Replace(text, []byte(`"version":1`), []byte(`"version":2`), 1), 0o600)
	}
	if err == nil {
		spoilt := filepath.Join(data(torn), "log-0000000000000001")
		err = os.WriteFile(spoilt, []byte("no journal at all, and long enough to be one"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	inFiles := []string{"serve", "--store", "files"}
	for name, c := range map[string]struct {
		dir  string
		args []string
		code int
		want string
	}{
		"in use":                {used, inFiles, 5, "in use"},
		"joined":                {used, []string{"serve", "--join", "taskledger-data"}, 2, "in files"},
		"of etcd":               {servers, inFiles, 5, "is in etcd"},
		"of files":              {files, []string{"serve"}, 5, "--store files"},
		"of another version":    {later, inFiles, 4, "version 2"},
		"damaged":               {torn, inFiles, 4, "log-0000000000000001"},
		"of another cluster":    {files, append(inFiles, "--expect-cluster", "other"), 5, "other"},
		"of other shards":       {files, append(inFiles, "--shards", "8"), 5, "8 shards"},
		"of another durability": {files, append(inFiles, "--durability", "opportunistic"), 2, "opportunistic"},
	} {
		var before map[string]string
		if c.dir != used { // where a node runs
			before = everything(t, data(c.dir))
		}
		r := run(t, c.dir, c.args...)
		named := strings.Contains(r.err, c.want) && strings.Contains(r.err, "taskledger-data")
		if r.code != c.code || strings.Count(r.err, "\n") != 1 || !named {
			t.Errorf("%s: code %d, want %d: %s", name, r.code, c.code, r.err)
		}
		if args, is := checked(c.args); is {
			r := run(t, c.dir, args...)
			if r.code != 1 || !strings.Contains(r.out, c.want) || !strings.Contains(r.out, "taskledger-data") {
				t.Errorf("check, %s: %+v", name, r)
			}
		}
		if after := everything(t, data(c.dir)); before != nil && !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the directory has changed", name)
		}
	}
	if r := run(t, files, "check", "--store", "files"); r.code != 0 || !strings.Contains(r.out, "4 shards, strict") {
		t.Errorf("check: %+v", r)
	}
}

// checked returns the arguments of check in place of those of serve, with a store in files.
func checked(args []string) ([]string, bool) {
	if !slices.Contains(args, "files") {
		return nil, false
	}
	return append([]string{"check"}, args[1:]...), true
}

// nobodysID is the id of a user who owns no file.
const nobodysID = 65534

func TestServe_InFilesNamesADirectoryThatItMayNotWrite(t *testing.T) {
	t.Parallel()
	// A directory that every user may enter.
	dir, err := os.MkdirTemp("", "entered")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data, program := filepath.Join(dir, "mine"), filepath.Join(dir, "program")
	text, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err = errors.Join(err, os.Chmod(dir, 0o755), os.Mkdir(data, 0o555)); err != nil {
		t.Fatal(err)
	}
	asNobody := func(args ...string) result {
		cmd := command(t.Context(), dir, append(args, "--data", data)...)
		cmd.Path = program
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodysID, Gid: nobodysID}}
		}
		return finish(t, cmd)
	}
	refused := func(what string) {
		r := asNobody("serve", "--store", "files")
		named := strings.Contains(r.err, data) && strings.Contains(r.err, "permission denied")
		if r.code != 4 || strings.Count(r.err, "\n") != 1 || !named {
			t.Errorf("%s: %+v", what, r)
		}
		r = asNobody("check", "--store", "files")
		if r.code != 1 || !strings.Contains(r.out, data) || !strings.Contains(r.out, "permission denied") {
			t.Errorf("%s: check: %+v", what, r)
		}
	}
	refused("an empty directory")
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.Chmod(data, 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, "--store", "files", "--data", data).stop(t)
	if err := os.Chmod(data, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(data, 0o755) })
	before := everything(t, data)
	refused("a directory with a store")
	if after := everything(t, data); !reflect.DeepEqual(before, after) {
		t.Error("the directory has changed")
	}
	if err := os.Chmod(data, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"verify", "list", "history first", "copy --from " + data + " --to other"} {
		r := asNobody(strings.Fields(args)...)
		if r.code != 4 || !strings.Contains(r.err, data) || !strings.Contains(r.err, "permission denied") {
			t.Errorf("%s where nothing can be seen: %+v", args, r)
		}
	}
}
