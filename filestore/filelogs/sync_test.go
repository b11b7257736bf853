package filelogs_test

import (
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"taskledger/filestore/filelogs"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/tasklog"
)

// A disk tells one sync alone that a write failed: the one with which another segment begins says that all is well.
func TestAppend_IsNotAcknowledgedWhoseSyncFailsWhileAnotherSegmentBegins(t *testing.T) {
	d := faultdisk.NewOneSync()
	l, err := filelogs.OpenLayer(d, filelogs.Config{MaxBytes: filelogs.MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var lines []tasklog.Line
	for range 30 { // three batches are more than a segment
		lines = append(lines, tasklog.Line{At: 1, Text: strings.Repeat("x", 1000)})
	}
	appendTo := func(attempt uint32) error {
		of := tasklog.Attempt{Shard: 1, Life: 5, Number: attempt}
		_, err := l.Append(t.Context(), of, tasklog.End{}, tasklog.Batch{First: 1, Lines: lines})
		return err
	}
	const others = 5
	ended := make(chan error, others+1)
	d.Arm()
	go func() { ended <- appendTo(1) }()
	<-d.Began
	for n := range uint32(others) {
		go func() { ended <- appendTo(n + 2) }()
	}
	for range 20_000 { // others have the time to begin another segment
		if names, err := d.List(); err != nil || len(names) > 1 {
			break
		}
		runtime.Gosched()
	}
	d.GoOn()
	for range others + 1 {
		if err := <-ended; !errors.Is(err, syscall.EIO) {
			t.Errorf("a batch whose sync failed, or one behind it, is acknowledged: %v", err)
		}
	}
	if err := appendTo(99); !errors.Is(err, syscall.EIO) {
		t.Errorf("after the sync that failed: %v", err)
	}
}
