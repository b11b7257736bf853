package testcluster_test

import (
	"os/exec"
	"sync"
	"testing"

	"taskledger/internal/testcluster"
)

func TestNATS_StartsAgainOnItsPortWhileProcessesAreStarted(t *testing.T) {
	n := testcluster.StartNATS(t)
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command("true").Run()
				}
			}
		})
	}
	defer all.Wait()
	defer close(done)
	for range 300 {
		n.Stop()
		n.Start()
	}
}
