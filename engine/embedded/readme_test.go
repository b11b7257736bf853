package embedded_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/engine/embedded"
)

// The command for other languages, by what it is made of: the nats CLI may be missing here.
func TestCompletions_NATSCommandSubscribesToCompletions(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/completions.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`\nnats --server "\$\(jq -r \.(\w+) (\S+)\)" --nkey (\S+) sub '(\S+)'`).FindSubmatch(document)
	if parts == nil {
		t.Fatal("no such command in it")
	}
	dir := t.TempDir()
	noop := builtin.Noop()
	node, err := embedded.Start(t.Context(), filepath.Join(dir, "taskledger-data"), noop)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	text, err := os.ReadFile(filepath.Join(dir, string(parts[2])))
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]any
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	server, _ := found[string(parts[1])].(string)
	conn, err := nats.Connect(server, nkeyIn(t, filepath.Join(dir, string(parts[3]))), nats.Timeout(5*time.Second))
	if err != nil {
		t.Fatalf("connect to %q: %v", server, err)
	}
	defer conn.Close()
	sub, err := conn.SubscribeSync(string(parts[4]))
	if err == nil {
		err = conn.FlushTimeout(5 * time.Second)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := noop.Submit(t.Context(), node, behaviors.None{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(20 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var event struct{ Subject string }
	if err := json.Unmarshal(m.Data, &event); err != nil || event.Subject != string(f.ID()) || m.Subject != "taskledger.completed.noop.SUCCESS" {
		t.Errorf("on %s: %s, %v", m.Subject, m.Data, err)
	}
}
