// Package progress draws a bar on a terminal while something long goes on.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	width    = 30                    // of the bar, characters
	interval = 50 * time.Millisecond // between two drawings
)

// Bar shows how far a count is. Where the writer is no terminal it shows nothing. Methods may be called concurrently.
type Bar struct {
	out  io.Writer // nil: no terminal
	what string
	now  func() time.Time

	mu    sync.Mutex
	drawn time.Time
	begun time.Time
}

// NewBar returns a bar on w; what names the things counted.
func NewBar(w io.Writer, what string) *Bar {
	b := &Bar{what: what, now: time.Now}
	if IsTerminal(w) {
		b.out = w
	}
	b.begun = b.now()
	return b
}

// IsTerminal reports whether somebody reads at once what is written.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Show draws done of total, with a note, unless it has just drawn.
func (b *Bar) Show(done, total int64, note string) {
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if now.Sub(b.drawn) < interval && done < total {
		return
	}
	b.drawn = now
	fmt.Fprintf(b.out, "\r\x1b[K%s %s", line(done, total, b.what, now.Sub(b.begun)), note)
}

// Done removes the bar.
func (b *Bar) Done() {
	if b.out != nil {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

func line(done, total int64, what string, took time.Duration) string {
	full := width
	if total > 0 {
		full = int(width * min(done, total) / total)
	}
	rate := 0.0
	if took > 0 {
		rate = float64(done) / took.Seconds()
	}
	return fmt.Sprintf("[%s%s] %d/%d %s, %.0f/s", strings.Repeat("#", full), strings.Repeat(".", width-full), done, total, what, rate)
}
