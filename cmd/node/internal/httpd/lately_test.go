package httpd_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/cmd/node/internal/httpd"
)

// However often somebody without a token asks whether the node is ready, it looks ten times a second.
func TestReady_IsLookedAtTenTimesASecondHoweverOftenItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		ready := httpd.Lately(func() string {
			looks++
			return fmt.Sprint(looks)
		})
		for range 1000 {
			if said := ready(); said != fmt.Sprint(looks) {
				t.Fatalf("after %d looks %q is said", looks, said)
			}
			time.Sleep(time.Millisecond)
		}
		if looks != 10 {
			t.Errorf("looked %d times in a second", looks)
		}
	})
}
