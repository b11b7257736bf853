package main

import (
	"context"
	"testing"
	"testing/synctest"
)

// Checks that change one node wait for each other, also for one that no lane runs any more.
func TestRunAll_EndsWithItsContextThoughChecksWaitForANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		of, ran := &node{}, 0
		j := job{name: "ends the context", of: of, run: func(*lane) error {
			ran++
			synctest.Wait() // until the other lanes wait for the node
			cancel()
			return nil
		}}
		if red := new(stage).runAll(ctx, []job{j, j, j, j, j}); red != 0 || ran != 1 {
			t.Errorf("%d ran, %d are red", ran, red)
		}
	})
}
