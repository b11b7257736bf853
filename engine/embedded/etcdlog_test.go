package embedded_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"

	"taskledger/engine/embedded"
)

// A full disk is told by etcd's own log alone, in a goroutine that nobody can recover.
func TestServers_SayThatEtcdGivesUpBeforeItPanics(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	s := start(t, embedded.ServersConfig{NoNATS: true, GaveUp: func(problem string) { told <- problem }})
	defer func() {
		said := fmt.Sprint(recover())
		if got := <-told; got != said || !strings.Contains(got, "failed to sync WAL") || !strings.Contains(got, "no space left") {
			t.Errorf("told %q, panicked with %q", got, said)
		}
	}()
	s.EtcdLog().Panic("failed to sync WAL", zap.Error(errors.New("no space left")))
}
