package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// backWithin bounds the time from when the servers are back until the joined node works again. It is asserted with RESTARTS only.
const backWithin = 5 * time.Second

// restarts is how often the servers die in TestServe_ComesBackForWhoJoinedAndWhoWaits, and whether backWithin is asserted: with
// RESTARTS in the environment, on a machine with nothing else to do.
func restarts(t *testing.T) (n int, timed bool) {
	t.Helper()
	text := os.Getenv("RESTARTS")
	if text == "" {
		return 3, false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n, true
}

// The first node has the servers and runs nothing, so that each outcome shows the joined node at work.
func TestServe_ComesBackForWhoJoinedAndWhoWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := []string{"--name", "a", "--slots", "0", "--ttl", "3s"}
	a := serve(t, dir, first...)
	b := serve(t, dir, "--join", "taskledger-data", "--name", "b", "--ttl", "3s")
	rounds, timed := restarts(t)
	for round := range rounds {
		id := fmt.Sprint("held-", round)
		waiting := command(context.Background(), dir, "submit", "sleep", `{"duration":"1s"}`, "--id", id, "--wait", "--timeout", "1m")
		var said, warned bytes.Buffer
		waiting.Stdout, waiting.Stderr = &said, &warned
		if err := waiting.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, id+" runs", func() bool {
			return run(t, dir, "get", id).code == 0 && field(t, dir, id, "status") == "RUNNING"
		})
		a.signal(syscall.SIGKILL)
		a.wait(t)
		back := time.Now()
		a = serve(t, dir, first...)
		for n := range 3 {
			must(t, dir, "submit", "noop", "--id", fmt.Sprint("again-", round, "-", n), "--wait")
		}
		if took := time.Since(back); timed && took > backWithin {
			t.Errorf("round %d: the joined node worked again after %s; its log:\n%s", round, took, b.stderr.String())
		} else {
			t.Logf("round %d: back after %s", round, took.Round(time.Millisecond))
		}
		if err := waiting.Wait(); err != nil || said.String() != id+"\n" {
			t.Errorf("round %d: who waited ended with %v: %s%s", round, err, said.String(), warned.String())
		}
	}
}
