package tasklog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/store"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
	"taskledger/tasklog/tasklogtest"
)

// begin is the time of the line before line 1 of a batch of package tasklogtest, whose lines of odd numbers are
// errors.
const begin = tasklogtest.Begin

// fill stores batches from line to line, given in pairs, as the log of an attempt.
func fill(t *testing.T, s tasklog.Store, attempt uint32, lines ...uint64) {
	t.Helper()
	to, end := of, tasklog.End{}
	to.Number = attempt
	for i := 0; i < len(lines); i += 2 {
		b := tasklogtest.Lines(lines[i], int(lines[i+1]-lines[i]+1))
		var err error
		if end, err = s.Append(t.Context(), to, end, b); err != nil {
			t.Fatal(err)
		}
	}
}

// told writes a line down by attempt and number, a gap with its size.
func told(l tasklog.TaskLine) string {
	if l.Missing > 0 {
		return fmt.Sprintf("%d:%d-%d", l.Attempt, l.Missing, l.Number)
	}
	return fmt.Sprintf("%d:%d", l.Attempt, l.Number)
}

func TestReadTask_TellsLinesAndGaps(t *testing.T) {
	two := []tasklog.Begun{{Number: 1, At: begin}, {Number: 2, At: begin}}
	for name, c := range map[string]struct {
		q    tasklog.Query
		want string
	}{
		"everything":  {tasklog.Query{Attempts: two}, "1:1 1:2 1:3 1:3-6 1:7 1:8 2:2-2 2:3 2:4"},
		"one attempt": {tasklog.Query{Attempts: two[1:]}, "2:2-2 2:3 2:4"},
		"errors":      {tasklog.Query{Attempts: two, Level: tasklog.Error}, "1:1 1:3 1:3-6 1:7 2:2-2 2:3"},
		"a range": {
			tasklog.Query{Attempts: two, Since: begin + 2, Until: begin + 3},
			"1:2 1:3 2:2-2 2:3",
		},
		"a range before a gap":   {tasklog.Query{Attempts: two[:1], Until: begin + 6}, "1:1 1:2 1:3"},
		"a range behind a gap":   {tasklog.Query{Attempts: two[:1], Since: begin + 7}, "1:3-6 1:7 1:8"},
		"a range within a batch": {tasklog.Query{Attempts: two[:1], Since: begin + 8}, "1:8"},
		"a range of nothing":     {tasklog.Query{Attempts: two, Since: begin + 9}, ""},
		"an end before a start":  {tasklog.Query{Attempts: two, Since: begin + 3, Until: begin + 2}, ""},
		"no attempts":            {tasklog.Query{Attempts: []tasklog.Begun{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := memlog.New()
			fill(t, s, 1, 1, 1, 2, 3, 7, 8)
			fill(t, s, 2, 3, 4)
			for limit := range 4 { // 0 = all on a page
				c.q.Limit = limit
				lines, err := readAll(s, c.q)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, l := range lines {
					got = append(got, told(l))
					if wants := l.At < max(c.q.Since, begin+1) || c.q.Until > 0 && l.At > c.q.Until; wants {
						t.Errorf("%s has the time %d", told(l), l.At)
					}
					if l.Missing > 0 && (l.Level != tasklog.Error || !strings.Contains(l.Text, "missing")) {
						t.Errorf("a gap reads %s %q", l.Level, l.Text)
					}
				}
				if got := strings.Join(got, " "); got != c.want {
					t.Errorf("%d lines a page: %s, want %s", limit, got, c.want)
				}
			}
		})
	}
}

// Whoever follows a log more slowly than it is trimmed misses lines that the log had.
func TestReadTask_TellsWhyLinesAreMissing(t *testing.T) {
	const bounds, speed = "older than the newest 100000 lines or 10 MiB", "written faster than the log takes them"
	s := memlog.New()
	q := tasklog.Query{Shard: of.Shard, Life: of.Life, Attempts: []tasklog.Begun{{Number: of.Number}}}
	end := tasklog.End{}
	add := func(first uint64) {
		t.Helper()
		var err error
		if end, err = s.Append(t.Context(), of, end, tasklogtest.Lines(first, 1)); err != nil {
			t.Fatal(err)
		}
	}
	trim := func() {
		t.Helper()
		if err := s.Trim(t.Context(), of, end); err != nil {
			t.Fatal(err)
		}
	}
	gap := func(want string, has, lacks []string) {
		t.Helper()
		p, err := tasklog.ReadTask(t.Context(), s, q)
		if err != nil || len(p.Lines) == 0 || told(p.Lines[0]) != want {
			t.Fatalf("%+v, %v, want %s", p.Lines, err, want)
		}
		for _, why := range has {
			if !strings.Contains(p.Lines[0].Text, why) {
				t.Errorf("%s reads %q, want %q", want, p.Lines[0].Text, why)
			}
		}
		for _, why := range lacks {
			if strings.Contains(p.Lines[0].Text, why) {
				t.Errorf("%s reads %q, and not %q", want, p.Lines[0].Text, why)
			}
		}
		q.After = p.Next
	}
	add(3)
	gap("1:2-2", []string{bounds, speed}, nil)
	add(6)
	gap("1:2-5", []string{speed}, []string{bounds})
	add(7)
	trim()
	add(8)
	gap("1:1-7", []string{bounds}, []string{speed})
	add(10)
	trim()
	add(11)
	add(13)
	gap("1:2-10", []string{bounds}, []string{speed})
}

func TestReadTask_OfManyAttemptsTellsTheNewest(t *testing.T) {
	s := memlog.New()
	var attempts []tasklog.Begun
	for n := uint32(1); n <= 12; n++ {
		fill(t, s, n, 1, 1)
		attempts = append(attempts, tasklog.Begun{Number: n})
	}
	lines, err := readAll(s, tasklog.Query{Attempts: attempts})
	if err != nil || len(lines) != 10 || lines[0].Attempt != 3 || lines[9].Attempt != 12 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

func TestReadTask_OfAnAttemptWithoutLinesSaysSinceWhenTheStoreHasSome(t *testing.T) {
	for name, c := range map[string]struct {
		at, since, until events.Millis
		tells            events.Millis // the line's time; 0 = there is none
	}{
		"begun before":             {begin, 0, 0, begin},
		"begun later":              {begin + 10, 0, 0, 0},
		"a range that may have it": {begin, begin + 3, begin + 20, begin + 3},
		"a range before":           {begin, 0, begin - 1, 0},
		"a range behind":           {begin, begin + 11, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := memlog.New()
			s.Empty(of, begin+10)
			q := tasklog.Query{
				Attempts: []tasklog.Begun{{Number: 1, At: c.at}},
				Since:    c.since,
				Until:    c.until,
				Limit:    1,
			}
			lines, err := readAll(s, q)
			if err != nil {
				t.Fatal(err)
			}
			if c.tells == 0 {
				if len(lines) > 0 {
					t.Errorf("told %+v", lines)
				}
				return
			}
			const since = "from before 2023-11-14T22:13:20.01Z"
			if len(lines) != 1 || lines[0].At != c.tells || lines[0].Level != tasklog.Error ||
				!strings.Contains(lines[0].Text, since) {
				t.Errorf("told %+v", lines)
			}
		})
	}
}

// What is written behind the last page comes on the page that its cursor names.
func TestReadTask_FollowsALog(t *testing.T) {
	s := memlog.New()
	q := tasklog.Query{Shard: of.Shard, Life: of.Life, Attempts: []tasklog.Begun{{Number: 1}}}
	next := func() (got []string) {
		t.Helper()
		p, err := tasklog.ReadTask(t.Context(), s, q)
		if err != nil || p.More {
			t.Fatalf("more %t, %v", p.More, err)
		}
		q.After = p.Next
		for _, l := range p.Lines {
			got = append(got, told(l))
		}
		return got
	}
	var end tasklog.End
	for _, c := range []struct {
		first uint64
		want  []string
	}{{1, []string{"1:1"}}, {2, []string{"1:2"}}, {5, []string{"1:2-4", "1:5"}}, {6, []string{"1:6"}}} {
		if got := next(); len(got) > 0 {
			t.Errorf("before line %d: %v", c.first, got)
		}
		var err error
		if end, err = s.Append(t.Context(), of, end, tasklogtest.Lines(c.first, 1)); err != nil {
			t.Fatal(err)
		}
		if got := next(); !slices.Equal(got, c.want) {
			t.Errorf("line %d: %v, want %v", c.first, got, c.want)
		}
	}
	s.Empty(of, begin+7)
	for i, want := range [][]string{{"1:1-0"}, nil} { // nobody knows which lines are missing: it is said once
		if got := next(); !slices.Equal(got, want) {
			t.Errorf("question %d of a log that was emptied: %v, want %v", i+1, got, want)
		}
	}
	if _, err := s.Append(t.Context(), of, end, tasklogtest.Lines(9, 1)); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 2, 1, 1)
	q.Attempts = append(q.Attempts, tasklog.Begun{Number: 2})
	if got, want := next(), []string{"1:2-8", "1:9", "2:1"}; !slices.Equal(got, want) {
		t.Errorf("after it was emptied: %v, want %v", got, want)
	}
}

// A log that is emptied between two pages is no end of it.
func TestReadTask_TellsOfWhatIsRemovedBetweenTwoPages(t *testing.T) {
	for _, oldest := range []events.Millis{0, begin + 10} {
		s := memlog.New()
		fill(t, s, 1, 1, 4)
		q := tasklog.Query{Shard: of.Shard, Life: of.Life, Attempts: []tasklog.Begun{{Number: 1, At: begin}}, Limit: 2}
		p, err := tasklog.ReadTask(t.Context(), s, q)
		if err != nil || !p.More {
			t.Fatalf("%+v, %v", p, err)
		}
		s.Empty(of, oldest)
		q.After = p.Next
		p, err = tasklog.ReadTask(t.Context(), s, q)
		if err != nil || len(p.Lines) != 1 || p.Lines[0].Level != tasklog.Error || p.Lines[0].Missing == 0 ||
			!strings.Contains(p.Lines[0].Text, "may be missing") {
			t.Errorf("nothing from before %d: %+v, %v", oldest, p, err)
		}
	}
}

// Many attempts of a task are silent. That the store has lost what was before them is one thing to say.
func TestReadTask_SaysOnceThatLinesMayBeMissing(t *testing.T) {
	s := memlog.New()
	s.Empty(of, begin+10)
	fill(t, s, 4, 1, 1)
	s.Empty(of, begin+10)
	var attempts []tasklog.Begun
	for n := uint32(1); n <= 6; n++ {
		attempts = append(attempts, tasklog.Begun{Number: n, At: begin + events.Millis(n)})
	}
	for limit := range 3 {
		lines, err := readAll(s, tasklog.Query{Attempts: attempts, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range lines {
			got = append(got, told(l))
		}
		if want := "1:1-0 4:1 5:1-0"; strings.Join(got, " ") != want {
			t.Errorf("%d lines a page: %v, want %s", limit, got, want)
		}
	}
}

// The writer of an attempt may store its last lines once the next attempt has begun.
func TestReadTask_FollowsAttemptsWhoseLinesComeLate(t *testing.T) {
	for _, late := range []bool{true, false} {
		s := memlog.New()
		q := tasklog.Query{Shard: of.Shard, Life: of.Life, Late: late}
		ends := map[uint32]tasklog.End{}
		write := func(attempt uint32, first uint64, lines int) {
			t.Helper()
			of := of
			of.Number = attempt
			end, err := s.Append(t.Context(), of, ends[attempt], tasklogtest.Lines(first, lines))
			if err != nil {
				t.Fatal(err)
			}
			ends[attempt] = end
		}
		next := func(limit int) string {
			t.Helper()
			var got []string
			for more := true; more; {
				q.Limit = limit
				p, err := tasklog.ReadTask(t.Context(), s, q)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range p.Lines {
					got = append(got, told(l))
				}
				if q.After, more = p.Next, p.More; len(p.Next.Behind) > 2 {
					t.Errorf("behind is %+v", p.Next.Behind)
				}
			}
			return strings.Join(got, " ")
		}
		want := func(limit int, with, without string) {
			t.Helper()
			want := with
			if !late {
				want = without
			}
			if got := next(limit); got != want {
				t.Errorf("late %t: %s, want %s", late, got, want)
			}
		}
		q.Attempts = []tasklog.Begun{{Number: 1}}
		write(1, 1, 1)
		want(1, "1:1", "1:1")
		q.Attempts = append(q.Attempts, tasklog.Begun{Number: 2}, tasklog.Begun{Number: 3})
		write(3, 1, 1)
		want(1, "3:1", "3:1")
		write(1, 2, 2)
		write(2, 2, 2)
		write(3, 2, 2)
		want(1, "1:2 1:3 2:1-1 2:2 2:3 3:2 3:3", "3:2 3:3")
		write(1, 4, 1)
		write(2, 4, 1)
		want(5, "1:4 2:4", "")
		write(2, 5, 2)
		q.Late = false // what was noted is read once more
		want(1, "2:5 2:6", "")
		write(2, 7, 1)
		write(3, 4, 1)
		want(0, "3:4", "3:4")
	}
}

func TestReadTask_PagesAreBounded(t *testing.T) {
	s := memlog.New()
	var end tasklog.End
	for i := range uint64(100) { // 6.4 MB, all of level info
		b := tasklog.Batch{First: 4*i + 1}
		for range 4 {
			b.Lines = append(b.Lines, tasklog.Line{At: begin, Text: strings.Repeat("x", tasklog.MaxLineBytes)})
		}
		var err error
		if end, err = s.Append(t.Context(), of, end, b); err != nil {
			t.Fatal(err)
		}
	}
	q := tasklog.Query{Shard: of.Shard, Life: of.Life, Attempts: []tasklog.Begun{{Number: 1}}}
	p, err := tasklog.ReadTask(t.Context(), s, q)
	if err != nil || len(p.Lines) != 64 || !p.More || p.Next.Line != 65 {
		t.Errorf("%d lines, next %+v, more %t, %v; want 1 MiB", len(p.Lines), p.Next, p.More, err)
	}
	q.Level = tasklog.Error
	p, err = tasklog.ReadTask(t.Context(), s, q)
	if err != nil || len(p.Lines) > 0 || !p.More || p.Next.Line != 257 {
		t.Errorf("%d lines, next %+v, more %t, %v; want none in 4 MiB", len(p.Lines), p.Next, p.More, err)
	}
	q.After = p.Next
	if p, err = tasklog.ReadTask(t.Context(), s, q); err != nil || len(p.Lines) > 0 || p.More {
		t.Errorf("%d lines, more %t, %v", len(p.Lines), p.More, err)
	}
}

// asked is a store that counts the batches that it returns.
type asked struct {
	tasklog.Reader
	batches int
}

// Read implements tasklog.Reader.
func (a *asked) Read(ctx context.Context, of tasklog.Attempt, r tasklog.Range) (tasklog.Stretch, error) {
	s, err := a.Reader.Read(ctx, of, r)
	a.batches += len(s.Batches)
	return s, err
}

// A log that was written slowly has a batch for each line. Whoever looks for errors in it gets pages, too.
func TestReadTask_PagesOfSmallBatchesAreBounded(t *testing.T) {
	s := memlog.New()
	const lines = 2500
	var end tasklog.End
	for i := range uint64(lines) {
		b := tasklog.Batch{First: i + 1, Lines: []tasklog.Line{{At: begin, Text: "x"}}}
		var err error
		if end, err = s.Append(t.Context(), of, end, b); err != nil {
			t.Fatal(err)
		}
	}
	q := tasklog.Query{
		Shard:    of.Shard,
		Life:     of.Life,
		Attempts: []tasklog.Begun{{Number: 1}},
		Level:    tasklog.Error,
	}
	pages := 0
	for more := true; more; pages++ {
		from := &asked{Reader: s}
		p, err := tasklog.ReadTask(t.Context(), from, q)
		if err != nil || len(p.Lines) > 0 || from.batches > 1100 {
			t.Fatalf("%d lines of %d batches, %v; want none of some 1,000", len(p.Lines), from.batches, err)
		}
		q.After, more = p.Next, p.More
	}
	if pages != 3 || q.After.Line != lines+1 {
		t.Errorf("%d pages up to %+v", pages, q.After)
	}
}

func TestReadTask_NamesWhatIsWrongWithAQuery(t *testing.T) {
	for want, q := range map[string]tasklog.Query{
		"limit: -1":             {Limit: -1},
		"limit: 1001":           {Limit: 1001},
		"level":                 {Level: tasklog.Error + 1},
		"attempts: 2 follows 2": {Attempts: []tasklog.Begun{{Number: 2}, {Number: 2}}},
	} {
		_, err := tasklog.ReadTask(t.Context(), memlog.New(), q)
		if invalid := (*events.InvalidError)(nil); !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// deaf is a reader that cannot be asked.
type deaf struct{}

func (deaf) Read(context.Context, tasklog.Attempt, tasklog.Range) (tasklog.Stretch, error) {
	return tasklog.Stretch{}, store.ErrUnavailable
}

func TestReadTask_WithoutAStoreIsAnErrorAndNoEmptyLog(t *testing.T) {
	if _, err := readAll(deaf{}, tasklog.Query{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
