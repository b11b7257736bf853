package tasklog_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/tasklog"
)

func TestOutput_MakesLinesOfText(t *testing.T) {
	long := strings.Repeat("x", tasklog.MaxLineBytes)
	cut := long[:tasklog.MaxLineBytes-len(" [cut]")] + " [cut]"
	const second = "SLEEP"
	for name, c := range map[string]struct{ in, want []string }{
		"lines":                        {[]string{"a\nb\n", "c\n"}, []string{"a", "b", "c"}},
		"empty lines":                  {[]string{"\n\na\n\n"}, []string{"", "", "a", ""}},
		"CR LF":                        {[]string{"a\r\nb\r", "\nc\rd\r\n"}, []string{"a", "b", "c\rd"}},
		"a line in pieces":             {[]string{"a", "b", "c\n"}, []string{"abc"}},
		"without an end when closed":   {[]string{"a\nb"}, []string{"a", "b"}},
		"CR when closed":               {[]string{"a\r"}, []string{"a"}},
		"without an end for a second":  {[]string{"a", second, "b\n"}, []string{"a", "b"}},
		"an end after a second":        {[]string{"a", second, "\nb\n"}, []string{"a", "b"}},
		"half an end after a second":   {[]string{"a\r", second, "\nb\n"}, []string{"a", "b"}},
		"CR alone":                     {[]string{"\r", second, "\nb\n"}, []string{"", "b"}},
		"half a rune for a second":     {[]string{"a\xc3", second, "\xa9\n"}, []string{"a", "é"}},
		"half a rune for ever":         {[]string{"a\xc3", second, second, second}, []string{"a", "\uFFFD"}},
		"invalid UTF-8":                {[]string{"a\xff\xfeb\n\xc3\n"}, []string{"a\uFFFDb", "\uFFFD"}},
		"the longest line":             {[]string{long + "\r\n" + long + "\n"}, []string{long, long}},
		"a byte too many":              {[]string{long + "y\nb\n"}, []string{cut, "b"}},
		"far too many":                 {[]string{long, long, second, long + "\nb\n"}, []string{cut, "b"}},
		"too long, and without an end": {[]string{long + long}, []string{cut}},
		"too long at a rune": {[]string{"x" + strings.Repeat("é", tasklog.MaxLineBytes/2) + "\n"},
			[]string{"x" + strings.Repeat("é", tasklog.MaxLineBytes/2-4) + " [cut]"}},
		"invalid and too long when replaced": {[]string{strings.Repeat("\xff ", tasklog.MaxLineBytes/2) + "\n"},
			[]string{strings.Repeat("\uFFFD ", (tasklog.MaxLineBytes-6)/4) + " [cut]"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newUnsteady(time.Millisecond)
				w := startWriter(t, s, of)
				out := w.Output(tasklog.Info, true)
				synctest.Wait() // the writer waits for its first line
				for _, text := range c.in {
					if text == second {
						time.Sleep(1100 * time.Millisecond)
					} else if n, err := out.Write([]byte(text)); n != len(text) || err != nil {
						t.Errorf("wrote %d of %d bytes: %v", n, len(text), err)
					}
				}
				if _, err := w.close(); err != nil {
					t.Error(err)
				}
				if got := texts(t, s); !slices.Equal(got, c.want) {
					t.Errorf("got %.200q, want %.200q", got, c.want)
				}
			})
		})
	}
}

func TestOutput_OfTwoLevelsAndAHandlerIsOneLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		w := startWriter(t, s, of)
		out, errs, log := w.Output(tasklog.Info, true), w.Output(tasklog.Error, true), slog.New(w.Handler())
		fmt.Fprint(out, "half of a ")
		fmt.Fprintln(errs, "failed")
		log.Info("began", "rows", 10)
		log.With("a", 1).WithGroup("g").Error("two\nlines", "b", "c d")
		log.Warn("no more than a warning")
		log.Debug("left out")
		fmt.Fprintln(out, "line")
		if _, err := w.close(); err != nil {
			t.Fatal(err)
		}
		lines, err := readAll(s, tasklog.Query{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range lines {
			got = append(got, l.Level.String()+" "+l.Text)
		}
		want := []string{
			"error failed", "info began rows=10", "error two", `error lines a=1 g.b="c d"`,
			"info no more than a warning", "info half of a line",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
