package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/events"
	"taskledger/task"
)

// Damage that a command reads itself is told without its shard's owner, who alone chooses a remedy.
func TestClientCommand_SaysWhatToDoAboutDamage(t *testing.T) {
	t.Parallel()
	a := &app{Program: Program{Name: "taskledger"}}
	if err := a.access.flags().Parse([]string{"--data", "d"}); err != nil {
		t.Fatal(err)
	}
	damage := fmt.Errorf("history of x: %w", events.ErrDamaged)
	err := a.withRemedy(damage)
	for _, word := range []string{damage.Error() + "; remedy: ", "taskledger shards --data d", "taskledger verify --data d"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in %v", word, err)
		}
	}
	if exitcode.Of(err) != exitcode.Of(damage) || !errors.Is(err, damage) {
		t.Errorf("exit code %d, want %d", exitcode.Of(err), exitcode.Of(damage))
	}
	for _, other := range []error{nil, task.ErrNotFound} {
		if got := a.withRemedy(other); got != other {
			t.Errorf("%v became %v", other, got)
		}
	}
}
