package filejournal_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
	"taskledger/filestore/journaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string, o filejournal.Options) *filejournal.Journal {
	t.Helper()
	j, err := filejournal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestJournal_KeepsTheContract(t *testing.T) {
	for _, o := range []filejournal.Options{
		{},
		{Durability: filejournal.Opportunistic},
		{SegmentBytes: 2000}, // many segments
	} {
		t.Run(fmt.Sprint(o.Durability, o.SegmentBytes), func(t *testing.T) {
			in := func(t *testing.T, dir string) journal.Journaler { return opened{open(t, dir, o), dir} }
			journaltest.Run(t, journaltest.Subject{
				Open:  func(t *testing.T) journal.Journaler { return in(t, t.TempDir()) },
				Again: func(t *testing.T, closed journal.Journaler) journal.Journaler { return in(t, closed.(opened).dir) },
			})
		})
	}
}

// onDisk knows its disk, and how often the machine was started.
type onDisk struct {
	*filejournal.Journal
	disk  *faultdisk.Disk
	boots int
}

func TestJournal_KeepsTheContractThroughCrashesAndOnAFullDisk(t *testing.T) {
	for _, d := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		t.Run(string(d), func(t *testing.T) {
			on := func(t *testing.T, disk *faultdisk.Disk, boots int) journal.Journaler {
				t.Helper()
				o := filejournal.Options{Durability: d, SegmentBytes: 2000, Boot: fmt.Sprint(boots)}
				if d == filejournal.Opportunistic {
					o.Lag = time.Hour
				}
				j, err := filejournal.OpenLayer(disk, o)
				if err != nil {
					t.Fatal(err)
				}
				return onDisk{j, disk, boots}
			}
			journaltest.Run(t, journaltest.Subject{
				Open: func(t *testing.T) journal.Journaler { return on(t, faultdisk.New(), 1) },
				Again: func(t *testing.T, closed journal.Journaler) journal.Journaler {
					return on(t, closed.(onDisk).disk, closed.(onDisk).boots)
				},
				Crash: func(t *testing.T, used journal.Journaler) journal.Journaler {
					return on(t, used.(onDisk).disk.Crash(fates(nil)["nothing"]), used.(onDisk).boots+1)
				},
				Fill: func(_ *testing.T, j journal.Journaler) (empty func()) {
					disk := j.(onDisk).disk
					disk.Room(disk.Used())
					return func() { disk.Room(0) }
				},
			})
		})
	}
}

// opened knows where its files are.
type opened struct {
	*filejournal.Journal
	dir string
}
