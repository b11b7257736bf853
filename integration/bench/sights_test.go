package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"taskledger/api/operations"
	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/item"
	"taskledger/schedule"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// Lists have more than a page of them shows.
const (
	storeName       = "sights"
	sightGroups     = 20
	groupItems      = 100 // of each group
	scheduleCount   = 100
	collectionCount = 100
	sourceName      = "shop"
	workID          = "sights"
	workBuckets     = 256
	failedBuckets   = 200 // have an item that fails
	workItem        = events.TaskID("sights/1")
	writerID        = "writer"
	writtenLines    = 200
	written         = events.TaskID("writer/1")
	pausedID        = "paused"
	madeWithin      = time.Minute // bounds the wait for what is made
	collectionID    = "collection"
	scheduleNames   = "nightly-"
)

// sights makes what pages show beside the tasks of fill: a store, schedules, collections, a work that runs, a task that
// has written lines, a pause and, for each viewer, a change of all that match.
type sights struct {
	work   *work.Work[behaviors.None, int]
	others []task.Behavior
}

func newSights() *sights {
	writer := behaviors.Define[behaviors.None, behaviors.None](writerID, nil)
	run := behaviors.Define[json.RawMessage, behaviors.None](collectionID, nil)
	s := &sights{work: work.Define(workID, nil, work.Partition[behaviors.None, int]{
		Items: func(_ context.Context, _ behaviors.None, b work.Bucket) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) { yield(int(b.Number), nil) }
		},
		Process:      holdLast,
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: workBuckets, Buckets: workBuckets},
		Workers:      4,
	})}
	s.others = []task.Behavior{
		s.work,
		writer.Bind(func(ctx context.Context, _ behaviors.None) (none behaviors.None, err error) {
			a, _ := behaviors.Attempt(ctx)
			for i := range writtenLines {
				a.Log.Info("a line of a task", "number", i)
			}
			return none, nil
		}),
		run.Bind(func(context.Context, json.RawMessage) (none behaviors.None, err error) { return none, nil }),
	}
	return s
}

// holdLast fails items of the first buckets, and keeps those of the last ones until the attempt ends, so that the work
// runs.
func holdLast(ctx context.Context, i int) error {
	if i <= failedBuckets {
		return errors.New("the item is broken")
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// pages lists the pages that refresh themselves.
func (s *sights) pages() []string {
	return []string{
		"/ui/stores/" + storeName,
		"/ui/stores/" + storeName + "?" + url.Values{"group": {groupOf(0)}}.Encode(),
		"/ui/schedules",
		"/ui/schedules/" + scheduleNames + "0",
		"/ui/collections",
		"/ui/work",
		"/ui/work/" + strings.ReplaceAll(string(workItem), "/", "~"),
		"/ui/tasks/" + strings.ReplaceAll(string(written), "/", "~") + "/logs",
		"/ui/jobs",
	}
}

// once lists the pages that read the journal back: they do not refresh themselves, and take the time that they may.
func (s *sights) once() []string { return []string{"/ui/settings", "/ui/audit"} }

func groupOf(i int) string { return fmt.Sprintf("group-%02d", i) }

// make makes all but the changes of all that match.
func (s *sights) make(ctx context.Context, p *measure.Pair) error {
	for _, part := range []struct {
		what string
		do   func(context.Context, *measure.Pair) error
	}{
		{"a store", fillSights},
		{"schedules", setSchedules},
		{"collections", setCollections},
		{"a work", s.beginWork},
		{"lines of a task", writeLines},
		{"a pause", func(ctx context.Context, p *measure.Pair) error {
			return p.Operations().Pause(ctx, pausedID, "to be seen")
		}},
	} {
		if err := part.do(ctx, p); err != nil {
			return fmt.Errorf("make %s: %w", part.what, err)
		}
	}
	return nil
}

func fillSights(ctx context.Context, p *measure.Pair) error {
	for g := range sightGroups {
		u := &item.Update{Client: 1}
		for i := range groupItems {
			u.Adds = append(u.Adds, item.Add{Group: groupOf(g), Data: []byte(strconv.Itoa(i))})
		}
		if _, err := p.Stores().Update(ctx, storeName, u); err != nil {
			return err
		}
		if _, err := p.Stores().Claim(ctx, storeName, &item.Claim{
			Client:   1,
			Group:    groupOf(g),
			Duration: farAhead,
		}); err != nil {
			return err
		}
	}
	return nil
}

// setSchedules sets schedules that do not fire meanwhile, and runs each once.
func setSchedules(ctx context.Context, p *measure.Pair) error {
	for i := range scheduleCount {
		d := schedule.Definition{
			Behavior: noop.ID(),
			Cron:     "@yearly",
			Timezone: "Europe/Berlin",
			Start:    time.Now().Add(farAhead),
		}
		if err := setAndRun(ctx, p, scheduleNames+strconv.Itoa(i), d); err != nil {
			return err
		}
	}
	return nil
}

func setCollections(ctx context.Context, p *measure.Pair) error {
	for i := range collectionCount {
		name := fmt.Sprintf("collection%d", i)
		d := schedule.Definition{
			Behavior: collectionID,
			Params:   fmt.Appendf(nil, `{"source":%q,"collection":%q}`, sourceName, name),
			UUIDs:    true,
		}
		if err := setAndRun(ctx, p, sourceName+"_"+name, d); err != nil {
			return err
		}
	}
	return nil
}

func setAndRun(ctx context.Context, p *measure.Pair, name string, d schedule.Definition) error {
	if _, _, err := p.Schedules().Set(ctx, name, d, schedule.Absent); err != nil {
		return err
	}
	f, err := p.Schedules().Run(ctx, name, "", 0)
	if err == nil {
		_, err = f.Wait(ctx)
	}
	return err
}

// beginWork begins the work, and waits until its first buckets have failed.
func (s *sights) beginWork(ctx context.Context, p *measure.Pair) error {
	f, err := s.work.Submit(ctx, p, behaviors.None{}, task.SubmitOptions{ID: workItem})
	if err != nil {
		return err
	}
	f.Close()
	return until(ctx, func() error {
		is, err := operations.Direct{Client: p.Client}.Works().Work(ctx, workItem)
		if err != nil {
			return err
		}
		if n := len(is.Partitions); n == 0 || is.Partitions[0].Items.Failed < failedBuckets {
			return fmt.Errorf("not all buckets that fail have failed: %+v", is.Partitions)
		}
		return nil
	})
}

func writeLines(ctx context.Context, p *measure.Pair) error {
	f, err := p.SubmitRaw(ctx, writerID, nil, task.SubmitOptions{ID: written})
	if err == nil {
		_, err = f.Wait(ctx)
	}
	return err
}

// until tries something until it succeeds.
func until(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, madeWithin)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(countAgain):
		}
	}
}

// change has each viewer change all tasks of an affinity, of which none can be, and waits for the ends.
func (s *sights) change(ctx context.Context, at net.Addr, viewers int) error {
	for viewer := range viewers {
		form := url.Values{"operation": {"retry"}, "affinity": {rareAffinity(rareOwner)}}
		to, _, err := send(ctx, at, http.MethodPost, "/ui/jobs", viewer, form)
		if err != nil {
			return err
		}
		if err := until(ctx, func() error {
			_, page, err := send(ctx, at, http.MethodGet, to, viewer, nil)
			if err == nil && !strings.Contains(page, "It is done") {
				err = fmt.Errorf("the change is not done: %.2000s", page)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// send sends a request of a viewer, and returns where the answer leads, and its text.
func send(
	ctx context.Context, at net.Addr, method, path string, viewer int, form url.Values,
) (to, page string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+at.String()+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", err
	}
	r.Header.Set("Authorization", "Bearer "+secretOf(viewer))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return "", "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %.200s", method, path, answer.Status, text)
	}
	return answer.Header.Get("Location"), string(text), err
}
