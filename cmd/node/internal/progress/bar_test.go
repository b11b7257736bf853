package progress

import (
	"bytes"
	"testing"
	"time"
)

func TestBar_ShowsNothingWhereThereIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	b := NewBar(&out, "files")
	b.Show(1, 2, "")
	b.Done()
	if out.Len() > 0 {
		t.Errorf("wrote %q", out.String())
	}
}

func TestLine_IsFullExactlyAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		want        string
	}{
		{0, 60, "[..............................] 0/60 files, 0/s"},
		{30, 60, "[###############...............] 30/60 files, 15/s"},
		{60, 60, "[##############################] 60/60 files, 30/s"},
		{0, 0, "[##############################] 0/0 files, 0/s"},
	} {
		if got := line(c.done, c.total, "files", 2*time.Second); got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.done, c.total, got, c.want)
		}
	}
}
