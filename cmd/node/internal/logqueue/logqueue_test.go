package logqueue_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/cmd/node/internal/logqueue"
)

func say(dropped int64) []byte { return fmt.Appendf(nil, "%d dropped\n", dropped) }

func TestWriter_NobodyWaitsForAReaderWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		w := logqueue.New(write, say)
		go w.Run()
		const written = 3000
		for i := range written {
			if n, err := fmt.Fprintf(w, "line %d\n", i); n == 0 || err != nil {
				t.Fatalf("line %d: %d, %v", i, n, err)
			}
		}
		began := time.Now()
		w.Close(time.Second)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("the end waited %s for the reader, want a second", waited)
		}
		all, ended := make(chan string), make(chan struct{})
		go func() {
			text, _ := io.ReadAll(read)
			all <- string(text)
		}()
		go func() {
			w.Close(time.Hour)
			close(ended)
		}()
		<-ended
		write.Close()
		text := <-all
		got, told := int64(0), int64(0) // whoever reads slowly is told of what was dropped now and then
		for line := range strings.Lines(text) {
			var n int64
			if _, err := fmt.Sscanf(line, "%d dropped", &n); err == nil {
				told += n
			} else {
				got++
			}
		}
		if dropped := w.Dropped(); got+dropped != written || got < 1000 || told != dropped {
			t.Errorf("%d of %d lines were written, %d dropped, of which %d were told: %.200s", got, written, dropped, told, text)
		}
	})
}

func TestWriter_LinesInAllAreBounded(t *testing.T) {
	w := logqueue.New(io.Discard, say)
	long := strings.Repeat("x", 400<<10)
	for range 3 {
		if _, err := io.WriteString(w, long); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.Dropped(); got != 1 {
		t.Errorf("%d lines of 400 KiB were dropped, want 1 of 3", got)
	}
	go w.Run()
	w.Close(time.Hour)
}

// failing refuses what is written while it is told to.
type failing struct {
	strings.Builder
	failures int
}

func (f *failing) Write(p []byte) (int, error) {
	if f.failures > 0 {
		f.failures--
		return 0, errors.New("closed")
	}
	return f.Builder.Write(p)
}

func TestWriter_WhatCannotBeWrittenIsCountedAndTold(t *testing.T) {
	to := &failing{failures: 3}
	w := logqueue.New(to, say)
	for i := range 4 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	go w.Run()
	w.Close(time.Hour)
	// The first line fails by itself, the second and the third with the line that would have told of those before.
	if got := to.String(); got != "3 dropped\nline 3\n" || w.Dropped() != 3 {
		t.Errorf("%q was written, %d dropped", got, w.Dropped())
	}
}

func TestWriter_AfterItsEndNobodyWaits(t *testing.T) {
	var to strings.Builder
	w := logqueue.New(&to, nil)
	go w.Run()
	fmt.Fprint(w, "last\n")
	w.Close(time.Hour)
	if n, err := fmt.Fprint(w, "late\n"); n != 5 || err != nil || to.String() != "last\n" || w.Dropped() != 1 {
		t.Errorf("%d, %v; %q was written", n, err, to.String())
	}
}
