package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"taskledger/engine"
)

// faulty is a cluster whose shard is served and has refused commands because of bugs.
type faulty struct{ silentShard }

func (faulty) Shards(context.Context) ([]engine.ShardInfo, error) {
	return []engine.ShardInfo{{Owner: "a", Bugs: 2}}, nil
}

func TestShards_TellOfBugs(t *testing.T) {
	var out bytes.Buffer
	a := &app{Program: Program{Out: &out}, output: "table"}
	if err := a.showShards(t.Context(), faulty{}); err != nil || !strings.Contains(out.String(), "2 commands were refused because of a bug") {
		t.Errorf("%v, printed %q", err, out.String())
	}
}
