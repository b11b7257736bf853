package testcluster_test

import (
	"io"
	"log/slog"
	"testing"

	"taskledger/internal/testcluster"
)

func TestSwept_KnowsTheMailOfClientsThatHadNoTimeAlone(t *testing.T) {
	log, has := testcluster.Swept(slog.NewTextHandler(io.Discard, nil))
	log = log.With("member", "a").WithGroup("g")
	log.Warn("mail stays until it is swept", "sender", "slow")
	log.Warn("another line", "sender", "other")
	for key, want := range map[string]bool{
		"taskledger/mailbox/1/slow/3":  true,
		"taskledger/answer/slow":       true,
		"taskledger/mailbox/1/other/3": false,
		"taskledger/node/a":            false,
	} {
		if has(key) != want {
			t.Errorf("%s: want %t", key, want)
		}
	}
}
