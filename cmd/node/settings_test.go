package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taskledger/internal/testcluster"
)

// dataMeant returns the directory of data that a client without a running node takes for meant.
func dataMeant(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := command(t.Context(), t.TempDir(), append([]string{"list"}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	r := finish(t, cmd)
	_, rest, found := strings.Cut(r.err, "no node runs on ")
	dir, _, _ := strings.Cut(rest, ";")
	if !found {
		t.Fatalf("code %d: %q", r.code, r.err)
	}
	return dir
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSettings_FlagWinsOverVariableOverFileOverDefault(t *testing.T) {
	t.Parallel()
	file := settingsFile(t, "data: from-file\nconcurrency:\n  exec: 2\n")
	for _, c := range []struct {
		env, args []string
		want      string
	}{
		{nil, nil, "./taskledger-data"},
		{nil, []string{"--config", file}, "from-file"},
		{[]string{"TASKLEDGER_CONFIG=" + file}, nil, "from-file"},
		{[]string{"TASKLEDGER_DATA=from-env"}, []string{"--config", file}, "from-env"},
		{[]string{"TASKLEDGER_DATA=from-env"}, []string{"--config", file, "--data", "from-flag"}, "from-flag"},
	} {
		if got := dataMeant(t, c.env, c.args...); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.env, c.args, got, c.want)
		}
	}
}

func TestSettings_ListsAndMapsReachTheNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := settingsFile(t, "exec-allow: [sh, date]\nconcurrency: {exec: 3}\nttl: 3s\nname: from-file\nslots: 7\n")
	cmd := command(t.Context(), dir, "--config", file)
	cmd.Env = append(cmd.Env, "TASKLEDGER_NAME=from-env", "TASKLEDGER_SHARDS=4")
	n := start(t, cmd)
	if !slices.ContainsFunc(n.commands, func(line string) bool { return strings.Contains(line, "--exec-allow=sh,date --name b") }) {
		t.Errorf("no second node that runs the same is suggested: %q", n.commands)
	}
	nodes := objects(t, must(t, dir, "nodes", "-o", "json"))
	if len(nodes) != 1 || nodes[0]["node"] != "from-env" || nodes[0]["slots"] != 7.0 {
		t.Errorf("nodes: %v", nodes)
	}
	if got := len(objects(t, must(t, dir, "shards", "-o", "json"))); got != 4 {
		t.Errorf("%d shards", got)
	}
	if out := must(t, dir, "submit", "exec", `{"program":"date"}`, "--wait"); !strings.Contains(out, "exit_code") {
		t.Errorf("printed %q", out)
	}
}

func TestSettings_MistakesAreWrongUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"an unknown name":        {"slotz: 3\n", "no setting is named slotz: is slots meant?"},
		"a value of wrong type":  {"slots: many\n", "settings.yaml: slots: invalid argument \"many\" for \"--slots\""},
		"two documents":          {"slots: 3\n---\nslots: 4\n", "settings.yaml: holds more than one YAML document"},
		"no value":               {"slots:\n", "settings.yaml: slots: no value: leave the line out"},
		"an unknown name alone":  {"slotz:\n", "no setting is named slotz: is slots meant?"},
		"a list for one value":   {"name: [a, b]\n", "settings.yaml: name: a list, want one value"},
		"a map for one value":    {"name: {a: 1}\n", "settings.yaml: name: names with values, want one value"},
		"a map of numbers":       {"name: {1: 2}\n", "settings.yaml: name: names with values, want one value"},
		"a map in a list":        {"etcd: [{a: 1}]\n", "settings.yaml: etcd: element 1 is no text"},
		"a list of settings":     {"- slots: 3\n", "settings.yaml"},
		"a flag of another kind": {"delay: 3s\n", "no setting is named delay"},
		"no YAML":                {"{", "yaml: line 1"},
		"no directory":           {"data: \"\"\n", "--data is empty"},
	} {
		if r := run(t, t.TempDir(), "serve", "--config", settingsFile(t, c.text)); r.code != 2 || r.out != "" || !strings.Contains(r.err, c.want) {
			t.Errorf("%s: code %d, %q", name, r.code, r.err)
		}
	}
	empty := settingsFile(t, "")
	r := runWith(t, []string{"TASKLEDGER_SLOTS=many"}, "serve", "--config", empty)
	if r.code != 2 || !strings.Contains(r.err, "TASKLEDGER_SLOTS: invalid argument") {
		t.Errorf("a variable of wrong type: code %d, %q", r.code, r.err)
	}
	if r := run(t, t.TempDir(), "list", "--config", "no-such-file.yaml"); r.code != 2 || !strings.Contains(r.err, "no-such-file.yaml") {
		t.Errorf("a missing file: code %d, %q", r.code, r.err)
	}
}

// A cluster that a setting names, or says how to get into, is meant: none of another name is asked instead.
func TestSettings_ThatWouldBeLeftOutAreWrongUsage(t *testing.T) {
	t.Parallel()
	file := settingsFile(t, "etcd: 127.0.0.1:1\n")
	for _, c := range []struct {
		env, args []string
		want      string
	}{
		{nil, []string{"--etcd-user", "u"}, "--etcd-user needs --etcd"},
		{[]string{"TASKLEDGER_ETCD_USER=u"}, nil, "--etcd-user needs --etcd"},
		{nil, []string{"--config", settingsFile(t, "nats-creds: f\n")}, "--nats-creds needs --nats"},
		{[]string{"TASKLEDGER_ETCD=127.0.0.1:1"}, []string{"--data", "here"}, "--data: a variable or the file of settings names etcd"},
		{[]string{"TASKLEDGER_ETCD="}, nil, "TASKLEDGER_ETCD is empty"},
		{[]string{"TASKLEDGER_ETCD="}, []string{"--config", file}, "TASKLEDGER_ETCD is empty"},
		{[]string{"TASKLEDGER_CONFIG="}, nil, "TASKLEDGER_CONFIG is empty"},
	} {
		r := runWith(t, c.env, append([]string{"get", "x"}, c.args...)...)
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, c.want) {
			t.Errorf("%q %q: code %d, %q", c.env, c.args, r.code, r.err)
		}
	}
	if got := dataMeant(t, []string{"TASKLEDGER_DATA="}, "--data", "from-flag"); got != "from-flag" {
		t.Errorf("beside a flag: %q", got)
	}
}

// A misspelt variable would leave a default in its place. Kubernetes sets others for a service of this name,
// which are no mistake.
func TestSettings_AVariableThatIsNoneIsWarnedOf(t *testing.T) {
	t.Parallel()
	env := []string{
		"TASKLEDGER_SLOTZ=3",
		"TASKLEDGER_SERVICE_HOST=10.0.0.1",
		"TASKLEDGER_PORT_7400_TCP=tcp://10.0.0.1:7400",
	}
	const want = "no setting is named by the variable TASKLEDGER_SLOTZ: is TASKLEDGER_SLOTS meant?\n"
	dir := t.TempDir()
	cmd := command(t.Context(), dir, "serve", "--ttl", "3s")
	cmd.Env = append(cmd.Env, env...)
	n := start(t, cmd)
	for who, said := range map[string]string{
		"a node":        n.stderr.String(),
		"what asks one": runWith(t, env, "list", "--data", filepath.Join(dir, "taskledger-data")).err,
	} {
		if !strings.Contains(said, want) || strings.Count(said, "no setting is named") != 1 {
			t.Errorf("%s says %q", who, said)
		}
	}
}

// A node remembers in --data which cluster it is of, also where a variable names the etcd.
func TestSettings_ANodeHasItsDataBesideEtcdOfAVariable(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	dir := t.TempDir()
	cmd := command(t.Context(), dir, "serve", "--data", "own/n1", "--archive", "keep")
	cmd.Env = append(cmd.Env, "TASKLEDGER_ETCD="+endpoint)
	start(t, cmd)
	if _, err := os.Stat(filepath.Join(dir, "own", "n1", "cluster-taskledger.id")); err != nil {
		t.Error(err)
	}
	if r := runWith(t, []string{"TASKLEDGER_ETCD=" + endpoint}, "check", "--data", "here", "--archive", "keep"); r.code != 0 {
		t.Errorf("check: %+v", r)
	}
}

// A list that a variable of the shell leaves empty would check nothing, allow nothing, or ask another cluster.
func TestLists_WithoutAValueAreWrongUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"verify", "--checkpoint", ""},
		{"verify", "--trust", ""},
		{"verify", "--checkpoint", "kept", "--checkpoint", ""},
		{"verify", "--checkpoint", "kept", "--trust", "a,"},
		{"verify", "export.json", "--trust="},
		{"serve", "--exec-allow", ""},
		{"serve", "--exec-env", ""},
		{"serve", "--exec-env", "HOME,"},
		{"serve", "--concurrency", ""},
		{"list", "--etcd", ""},
		{"list", "--etcd", "127.0.0.1:1", "--nats", ""},
		{"list", "--config", settingsFile(t, "etcd: []\n")},
	} {
		if r := run(t, t.TempDir(), args...); r.code != 2 || r.out != "" || !strings.Contains(r.err, "empty") && args[1] != "--concurrency" {
			t.Errorf("%q: code %d, %q", args, r.code, r.err)
		}
	}
}
