package cli

import (
	"bytes"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/ledger/repair"
)

func TestRepair_NamesTheSameClusterInItsRemedy(t *testing.T) {
	t.Parallel()
	a := &app{Program: Program{Name: "taskledger"}}
	if err := a.access.flags().Parse([]string{"--etcd", "e:1", "--cluster", "blue"}); err != nil {
		t.Fatal(err)
	}
	if got := a.canBeRemoved(2).Error(); !strings.HasSuffix(got, "taskledger repair --yes --cluster blue --etcd e:1") {
		t.Errorf("told: %s", got)
	}
}

// The manual says of which keys the exit code tells.
func TestRepair_EndsWith1WhileSomethingIsLeftToDo(t *testing.T) {
	t.Parallel()
	const foreign, leaseless = "owner/99", "node/x"
	for name, c := range map[string]struct {
		strays []repair.Stray
		want   int
	}{
		"nothing":                       {nil, exitcode.OK},
		"a key of a foreign shard":      {[]repair.Stray{{Key: foreign, Shard: -1, Keep: "it is ignored"}}, exitcode.OK},
		"a node key without a lease":    {[]repair.Stray{{Key: leaseless, Shard: -1}}, exitcode.Failed},
		"the same, removed":             {[]repair.Stray{{Key: leaseless, Shard: -1, Removed: true}}, exitcode.OK},
		"a key that can be removed":     {[]repair.Stray{{Key: "journal/0/2"}}, exitcode.Failed},
		"the same, which is gone":       {[]repair.Stray{{Key: "journal/0/2", Removed: true}}, exitcode.OK},
		"a key that may be an entry":    {[]repair.Stray{{Key: "journal/0/2", Keep: repair.KeepReplaced}}, exitcode.Failed},
		"that and a foreign shard's":    {[]repair.Stray{{Key: foreign, Shard: -1, Keep: "it is ignored"}, {Key: "journal/0/2"}}, exitcode.Failed},
		"removed and a foreign shard's": {[]repair.Stray{{Key: foreign, Shard: -1, Keep: "it is ignored"}, {Key: "journal/0/2", Removed: true}}, exitcode.OK},
	} {
		var out bytes.Buffer
		a := &app{Program: Program{Name: "taskledger", Out: &out}, output: "table"}
		a.access.flags()
		if got := exitcode.Of(a.showStrays(c.strays)); got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
		for _, s := range c.strays {
			if !strings.Contains(out.String(), s.Key) {
				t.Errorf("%s: %s is not shown:\n%s", name, s.Key, out.String())
			}
		}
	}
}
