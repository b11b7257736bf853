package exitcode_test

import (
	"errors"
	"fmt"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/etcdstore"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/store/transfer"
)

func TestOf_AnotherClusterIsRefusedAsAnotherNumberOfShardsIs(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		etcdstore.ErrShards, etcdstore.ErrOtherCluster,
		filestore.ErrShards, filestore.ErrOtherCluster, filearchive.ErrOtherCluster, filelogs.ErrOtherCluster,
		filejournal.ErrInUse, infiles.ErrOtherStore,
		store.ErrUnfinished, store.ErrTaken, filestore.ErrUnsettled,
		transfer.ErrNodes, transfer.ErrDiffers, transfer.ErrTrimmed,
	} {
		if got := exitcode.Of(fmt.Errorf("open: %w", err)); got != exitcode.Refused {
			t.Errorf("%v: %d, want %d", err, got, exitcode.Refused)
		}
	}
}

func TestOf_AStoreThatTakesNoWritesIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, err := range []error{store.ErrFull, store.ErrBroken} {
		for _, err := range []error{fmt.Errorf("copy: %w", err), &exitcode.ServeError{Err: err}} {
			if got := exitcode.Of(err); got != exitcode.Unavailable {
				t.Errorf("%v: %d, want %d", err, got, exitcode.Unavailable)
			}
		}
	}
}

func TestOf_SchedulesAreMissingAndRefusedAsTasksAre(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{schedule.ErrNotFound: exitcode.NotFound, schedule.ErrChanged: exitcode.Refused} {
		if got := exitcode.Of(fmt.Errorf("schedule nightly: %w", err)); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestUnprinted_SaysWhatWasDone(t *testing.T) {
	t.Parallel()
	err := exitcode.Unprinted("accepted: a", errors.New("no space left"))
	if want := "accepted: a, but it could not be printed: no space left"; err.Error() != want || exitcode.Of(err) != exitcode.Unavailable {
		t.Errorf("%v of code %d, want %q of %d", err, exitcode.Of(err), want, exitcode.Unavailable)
	}
	if err := exitcode.Unprinted("accepted: a", nil); err != nil {
		t.Error(err)
	}
}
