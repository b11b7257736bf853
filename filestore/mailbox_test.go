package filestore_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"taskledger/filestore/memjournal"
)

func TestStore_KeepsNothingOfSendersThatHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, new(memjournal.Journal))
		ctx, leave := context.WithCancel(t.Context())
		for i := range 100 {
			go func() {
				for range s.Answers(ctx, fmt.Sprint("sender-", i)) {
				}
			}()
		}
		synctest.Wait()
		if n := s.Topics(); n != 100 {
			t.Errorf("%d topics, want one for each of 100 senders that wait", n)
		}
		leave()
		synctest.Wait()
		if n := s.Topics(); n != 0 {
			t.Errorf("%d topics, and nobody waits", n)
		}
	})
}
