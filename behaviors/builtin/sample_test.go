package builtin_test

import (
	"testing"
	"time"

	"taskledger/behaviors/builtin"
)

func TestSample_OfEachBuiltInBehaviorIsTakenByIt(t *testing.T) {
	t.Parallel()
	all := builtin.Behaviors(builtin.Options{
		Exec:     builtin.ExecOptions{Allow: []string{"date"}},
		Checksum: builtin.ChecksumOptions{Root: "."},
	})
	if len(all) != 5 {
		t.Errorf("%d behaviors", len(all))
	}
	for _, b := range all {
		if _, err := b.Plan([]byte(builtin.Sample(b.ID())), time.Now()); err != nil {
			t.Errorf("%s: %v", b.ID(), err)
		}
	}
	if s := builtin.Sample("mine"); s != "" {
		t.Errorf("of another behavior: %s", s)
	}
}
