package main_test

import (
	"bytes"
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"taskledger/internal/testkit"
)

// backWithin bounds the time from when the servers are back until the joined node works again. It is asserted in a
// proof only.
const backWithin = 5 * time.Second

// The first node has the servers and runs nothing, so that each outcome shows the joined node at work.
func TestServe_ComesBackForWhoJoinedAndWhoWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := []string{"--name", "a", "--slots", "0", "--ttl", "3s"}
	a := serve(t, dir, first...)
	b := serve(t, dir, "--join", "taskledger-data", "--name", "b", "--ttl", "3s")
	for round := range testkit.Times(2, 20) {
		id := fmt.Sprint("held-", round)
		waiting := command(context.Background(), dir, "submit", "sleep", `{"duration":"3s"}`, "--id", id, "--wait", "--timeout", "1m")
		var said, warned bytes.Buffer
		waiting.Stdout, waiting.Stderr = &said, &warned
		if err := waiting.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, id+" has begun", func() bool { // and may be over where each command takes seconds
			return run(t, dir, "get", id).code == 0 && field(t, dir, id, "status") != "CREATED"
		})
		a.signal(syscall.SIGKILL)
		a.wait(t)
		back := time.Now()
		a = serve(t, dir, first...)
		for n := range 3 {
			must(t, dir, "submit", "noop", "--id", fmt.Sprint("again-", round, "-", n), "--wait")
		}
		if took := time.Since(back); testkit.Whole() && took > backWithin {
			t.Errorf("round %d: the joined node worked again after %s; its log:\n%s", round, took, b.stderr.String())
		} else {
			t.Logf("round %d: back after %s", round, took.Round(time.Millisecond))
		}
		if err := waiting.Wait(); err != nil || said.String() != id+"\n" {
			t.Errorf("round %d: who waited ended with %v: %s%s", round, err, said.String(), warned.String())
		}
	}
}
