package main_test

import (
	"syscall"
	"testing"
)

func TestHealth_IsReadyWhileTheNodeServesAndUnavailableAfterThat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serveFiles(t, dir)
	if got := must(t, dir, "health"); got != "ready" {
		t.Errorf("it says %q", got)
	}
	n.signal(syscall.SIGTERM)
	<-n.ended
	if r := run(t, dir, "health"); r.code != 4 {
		t.Errorf("without a node: code %d: %s", r.code, r.err)
	}
}
