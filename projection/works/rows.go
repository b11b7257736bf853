package works

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
)

// permitsARow bounds the permits of a row.
const permitsARow = 1000

// sections returns the rows of the state, in the order in which they are stored. They are the arrays
//
//	works        [id, life, flags, run, definition, [partition ...], planned at, current, error bytes, uncertain, last worker,
//	              [part ...], [bucket, worker, attempt, since ...], [bucket, failed ...], [lost, failed],
//	              [bucket, lost ...], alive]
//	workers      [id of the work, number, life, active, lost, failed, bytes]
//	workpermits  [id of the work, [bucket, counter, item ...]]
//
// with partitions as in WorkPlanned. The flags of a work are 1 for one that is planned, 2 for a run over failed
// buckets, 4 for one whose task has ended with SUCCESS since, 8 for one whose task waits for its workers, 16 for one
// whose task has ended and 32 for one whose counters were reset since an attempt of its task began. The losses and
// failures behind the buckets are of the work's own task; what follows them is missing in snapshots of before. A part
// is
//
//	[[started, ended, moved, busy, busy from], [expected], [done, failed, skipped], total, ended, [counter ...], spanned, buckets that failed,
//	 failed, taken]
//
// with an empty array where the items were not counted, and with failed and taken as ranges encode themselves.
func (s *Works) sections() []extension.Section {
	return append([]extension.Section{
		{Name: "works", List: s.list, Read: s.read},
		{Name: "workers", List: s.listWorkers, Read: s.readWorker},
		{Name: "workpermits", List: s.listPermits, Read: s.readPermits},
	}, s.streamSections()...)
}

// sorted returns the works by the ids of their tasks.
func (s *Works) sorted() []*Work {
	all := make([]*Work, 0, len(s.byParent))
	for _, of := range s.byParent {
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b *Work) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (s *Works) list() (int, func(int, *wire.Writer)) {
	all := make([]Work, 0, len(s.byParent))
	for _, of := range s.sorted() {
		c := *of
		c.Parts = slices.Clone(of.Parts)
		for i := range c.Parts {
			c.Parts[i].failed, c.Parts[i].taken = of.Parts[i].failed.Copy(), of.Parts[i].taken.Copy()
		}
		own := *of.workers[1]
		c.workers = map[uint32]*Worker{1: &own}
		all = append(all, c)
	}
	return len(all), func(i int, w *wire.Writer) { all[i].encode(w) }
}

// flags returns the flags in stored order: the first is the lowest bit.
func (w *Work) flags() [6]*bool {
	return [...]*bool{&w.Planned, &w.Retried, &w.Finished, &w.Asleep, &w.Final, &w.Cleared}
}

func (w *Work) encode(out *wire.Writer) {
	out.Array(15 + 2)
	out.Text(string(w.ID))
	out.Uint(uint64(w.Life))
	flags := uint64(0)
	for bit, is := range w.flags() {
		if *is {
			flags |= 1 << bit
		}
	}
	out.Uint(flags)
	out.Uint(uint64(w.Run))
	out.Text(w.Definition)
	out.Array(len(w.Partitions))
	for i := range w.Partitions {
		w.Partitions[i].Encode(out)
	}
	out.Int(int64(w.PlannedAt))
	out.Uint(uint64(w.Current))
	out.Int(w.ErrorBytes)
	out.Uint(w.Uncertain)
	out.Uint(uint64(w.last))
	out.Array(len(w.Parts))
	for i := range w.Parts {
		w.Parts[i].encode(out)
	}
	out.Array(4 * len(w.open))
	for _, o := range w.open {
		out.Uint(o.Bucket)
		out.Uint(uint64(o.Worker))
		out.Uint(uint64(o.Attempt))
		out.Int(int64(o.Since))
	}
	w.encodeTries(out, func(t *try) *uint32 { return &t.failed })
	out.Array(2)
	out.Uint(uint64(w.workers[1].Lost))
	out.Uint(uint64(w.workers[1].Failed))
	w.encodeTries(out, func(t *try) *uint32 { return &t.lost })
	out.Int(int64(w.alive))
}

// encodeTries writes the buckets with one of the counts of attempts, where it is not 0.
func (w *Work) encodeTries(out *wire.Writer, count func(t *try) *uint32) {
	n := 0
	for i := range w.tries {
		if *count(&w.tries[i]) > 0 {
			n++
		}
	}
	out.Array(2 * n)
	for i := range w.tries {
		if is := *count(&w.tries[i]); is > 0 {
			out.Uint(w.tries[i].bucket)
			out.Uint(uint64(is))
		}
	}
}

// decodeTries reads what encodeTries wrote.
func (w *Work) decodeTries(r *wire.Reader, count func(t *try) *uint32) {
	n := r.Array()
	if n%2 != 0 || n > 2*events.MaxWorkers { // the least free bucket is given first: so many have begun and not ended
		r.Fail("array of %d values of buckets and attempts", n)
		return
	}
	last := uint64(0)
	for i := 0; i < n/2 && r.Err() == nil; i++ {
		bucket, times := r.Uint(), number(r)
		if bucket <= last || times == 0 {
			r.Fail("%d attempts on bucket %d, after bucket %d", times, bucket, last)
			return
		}
		last = bucket
		*count(w.tried(bucket)) = times
	}
}

func (p *Part) encode(w *wire.Writer) {
	w.Array(10)
	w.Array(5)
	for _, at := range [...]events.Millis{p.Started, p.Ended, p.Moved, p.Busy, p.BusyFrom} {
		w.Int(int64(at))
	}
	if p.Counted {
		w.Array(1)
		w.Uint(p.Expected)
	} else {
		w.Array(0)
	}
	w.Array(3)
	w.Uint(p.Items.Done)
	w.Uint(p.Items.Failed)
	w.Uint(p.Items.Skipped)
	w.Uint(p.Total)
	w.Uint(p.Done)
	w.Array(len(p.Counters))
	for _, n := range p.Counters {
		w.Uint(n)
	}
	w.Bool(p.Spanned)
	w.Uint(p.FailedIn)
	w.Bytes(p.failed.encode())
	w.Bytes(p.taken.encode())
}

// decode reads what encode wrote.
func (w *Work) decode(r *wire.Reader) {
	tail := r.ArrayFrom(15)
	w.ID, w.Life = events.TaskID(r.Text()), events.Ref(r.Uint())
	flags := r.Uint()
	for bit, is := range w.flags() {
		*is = flags&(1<<bit) != 0
	}
	if flags >= 1<<len(w.flags()) {
		r.Fail("flags %d", flags)
	}
	w.Run, w.Definition = number(r), r.Text()
	n := r.Array()
	if n > events.MaxPartitions {
		r.Fail("%d partitions", n)
		return
	}
	w.Partitions = make([]events.WorkPartition, n)
	for i := range w.Partitions {
		w.Partitions[i].Decode(r)
	}
	w.PlannedAt, w.Current = events.Millis(r.Int()), int(number(r))
	w.ErrorBytes, w.Uncertain, w.last = r.Int(), r.Uint(), number(r)
	if r.ArrayOf(n); r.Err() != nil {
		return
	}
	w.Parts = make([]Part, n)
	for i := range w.Parts {
		if w.Parts[i].decode(r, &w.Partitions[i]); r.Err() != nil {
			return
		}
	}
	w.decodeOpen(r)
	own := w.own()
	r.ArrayOf(2)
	own.Lost, own.Failed = number(r), number(r)
	if tail >= 2 {
		w.decodeTries(r, func(t *try) *uint32 { return &t.lost })
		w.alive = events.Millis(r.Int())
		tail -= 2
	}
	r.Skip(tail)
	w.workers, w.permits = map[uint32]*Worker{1: own}, newPermits()
}

func (w *Work) decodeOpen(r *wire.Reader) {
	n := r.Array()
	if n > 4*events.MaxWorkers || n%4 != 0 {
		r.Fail("array of %d values of open buckets", n)
		return
	}
	for range n / 4 {
		w.open = append(w.open, Open{
			Bucket:  r.Uint(),
			Worker:  number(r),
			Attempt: events.Ref(r.Uint()),
			Since:   events.Millis(r.Int()),
		})
	}
	w.decodeTries(r, func(t *try) *uint32 { return &t.failed })
}

func (p *Part) decode(r *wire.Reader, plan *events.WorkPartition) {
	r.ArrayOf(10)
	r.ArrayOf(5)
	for _, at := range [...]*events.Millis{&p.Started, &p.Ended, &p.Moved, &p.Busy, &p.BusyFrom} {
		*at = events.Millis(r.Int())
	}
	switch n := r.Array(); n {
	case 0:
	case 1:
		p.Counted, p.Expected = true, r.Uint()
	default:
		r.Fail("array of %d expected items", n)
	}
	r.ArrayOf(3)
	p.Items.Done, p.Items.Failed, p.Items.Skipped = r.Uint(), r.Uint(), r.Uint()
	p.Total, p.Done = r.Uint(), r.Uint()
	n := r.Array()
	if n != 0 && n != len(plan.Thresholds) {
		r.Fail("%d counters of %d thresholds", n, len(plan.Thresholds))
		return
	}
	for range n {
		p.Counters = append(p.Counters, r.Uint())
	}
	p.Spanned, p.FailedIn = r.Bool(), r.Uint()
	p.failed, p.taken = ranges(r, plan.Buckets), ranges(r, plan.Buckets)
}

func ranges(r *wire.Reader, last uint64) Ranges {
	of, err := decodeRanges(r.View(), last)
	if err != nil {
		r.FailBy(err)
	}
	return of
}

func number(r *wire.Reader) uint32 {
	n := r.Uint()
	if n > math.MaxUint32 {
		r.Fail("number %d", n)
	}
	return uint32(n)
}

func (s *Works) read(r *wire.Reader) {
	of := new(Work)
	if of.decode(r); r.Err() != nil {
		return
	}
	if problem := of.problem(); problem != "" {
		r.Fail("work of %q: %s", of.ID, problem)
		return
	}
	if s.byParent[of.ID] != nil {
		r.Fail("work of %q is there twice", of.ID)
		return
	}
	s.byParent[of.ID] = of
	s.bytes += of.size()
	s.last = max(s.last, of.Life)
	for _, o := range of.open {
		s.last = max(s.last, o.Attempt)
	}
}

// problem says what keeps the work from being the fold of events, "" if nothing does.
func (w *Work) problem() string {
	if err := w.ID.Validate(); err != nil {
		return err.Error()
	}
	if err := events.CheckPartitions(w.Partitions); err != nil {
		return err.Error()
	}
	switch {
	case w.Life == 0 || w.Run == 0 || len(w.ID) > events.MaxWorkParentBytes:
		return "it has no life or no run, or an id that is too long"
	case w.Current > len(w.Parts) || !w.Planned && w.Current != 0:
		return "a partition is under way that is not there"
	case w.failedRanges() > MaxFailedRanges:
		return "too many ranges of failed buckets"
	}
	for i := range w.Parts {
		p, started, under := &w.Parts[i], i < w.Current, i == w.Current-1
		switch {
		case started != (p.Started != 0) || started && !under && p.Ended == 0:
			return "its partitions do not follow one another"
		case p.Total > w.Partitions[i].Buckets || p.Done > p.Total || p.Ended != 0 && p.Done != p.Total:
			return "a partition has more buckets done than it has"
		case started && len(p.Counters) != len(w.Partitions[i].Thresholds):
			return "a partition without its counters"
		case p.Ended == 0 && p.taken.Count() != w.Partitions[i].Buckets-p.Total+p.Done+uint64(w.openIn(i)):
			return "the buckets that are done or open are not those that are taken"
		}
	}
	return w.openProblem()
}

// openIn counts the open buckets of a partition.
func (w *Work) openIn(partition int) int {
	if p, _ := w.Part(); p == nil || partition != w.Current-1 {
		return 0
	}
	return len(w.open)
}

func (w *Work) openProblem() string {
	p, plan := w.Part()
	if p == nil && len(w.open)+len(w.tries) > 0 {
		return "buckets are open and no partition is under way"
	}
	last := uint64(0)
	workers := map[uint32]bool{}
	for _, o := range w.open {
		if o.Bucket <= last || o.Bucket > plan.Buckets || o.Worker == 0 || o.Attempt == 0 || workers[o.Worker] ||
			!p.taken.Has(o.Bucket) {
			return "an open bucket that is none, or of a worker that has two"
		}
		last, workers[o.Worker] = o.Bucket, true
	}
	last = 0
	for _, t := range w.tries {
		if t.bucket <= last || t.bucket > plan.Buckets || t.failed+t.lost == 0 {
			return "attempts that failed or were lost with no bucket"
		}
		last = t.bucket
	}
	return ""
}

func (s *Works) listWorkers() (int, func(int, *wire.Writer)) {
	type row struct {
		of events.TaskID
		Worker
	}
	var all []row
	for _, of := range s.sorted() {
		for _, w := range of.Workers() {
			all = append(all, row{of.ID, *w})
		}
	}
	return len(all), func(i int, w *wire.Writer) {
		is := &all[i]
		w.Array(7)
		w.Text(string(is.of))
		w.Uint(uint64(is.Number))
		w.Uint(uint64(is.Life))
		w.Bool(is.Active)
		w.Uint(uint64(is.Lost))
		w.Uint(uint64(is.Failed))
		w.Int(is.bytes)
	}
}

func (s *Works) readWorker(r *wire.Reader) {
	r.ArrayOf(7)
	of := s.byParent[events.TaskID(r.Text())]
	w := &Worker{Number: number(r), Life: events.Ref(r.Uint()), Active: r.Bool()}
	w.Lost, w.Failed, w.bytes = number(r), number(r), r.Int()
	switch {
	case r.Err() != nil:
	case of == nil || w.Number < 2 || w.Number > of.last || w.Life == 0 || w.bytes < 0 || w.bytes > MaxKeptBytes:
		r.Fail("worker %d of no work", w.Number)
	case of.workers[w.Number] != nil:
		r.Fail("worker %d of %q is there twice", w.Number, of.ID)
	default:
		w.ID = events.WorkerID(of.ID, w.Number)
		of.workers[w.Number] = w
		s.byWorker[w.ID] = workerOf{work: of, number: w.Number}
		s.count(of, w, 1)
		s.bytes += workerBytes
		s.last = max(s.last, w.Life)
	}
}

func (s *Works) listPermits() (int, func(int, *wire.Writer)) {
	type row struct {
		of    events.TaskID
		items []permit
	}
	var all []row
	for _, of := range s.sorted() {
		if of.permits.Len() == 0 {
			continue
		}
		for items := range slices.Chunk(of.permits.Items(), permitsARow) {
			all = append(all, row{of.ID, items})
		}
	}
	return len(all), func(i int, w *wire.Writer) {
		w.Array(2)
		w.Text(string(all[i].of))
		w.Array(3 * len(all[i].items))
		for _, is := range all[i].items {
			w.Uint(is.bucket)
			w.Uint(uint64(is.counter))
			w.Uint(is.item)
		}
	}
}

func (s *Works) readPermits(r *wire.Reader) {
	r.ArrayOf(2)
	of := s.byParent[events.TaskID(r.Text())]
	n := r.Array()
	if of == nil || n == 0 || n%3 != 0 || n > 3*permitsARow {
		r.Fail("%d values of permits of a work", n)
		return
	}
	p, plan := of.Part()
	for range n / 3 {
		is := permit{bucket: r.Uint(), counter: int(number(r)), item: r.Uint()}
		if r.Err() != nil {
			return
		}
		if p == nil || is.counter >= len(plan.Thresholds) || is.bucket == 0 ||
			is.bucket > plan.Buckets && plan.Form != events.FormPrecise {
			r.Fail("a permit of counter %d in bucket %d", is.counter, is.bucket)
			return
		}
		if _, twice := of.permits.Set(is); twice {
			r.Fail("item %x of bucket %d has two permits", is.item, is.bucket)
			return
		}
		s.permits++
		s.bytes += permitBytes
	}
}

// restored completes the state after every row was read: that of an entry.
func (s *Works) restored(entry uint64, _ events.Millis) error {
	if s.last.Entry() > entry {
		return fmt.Errorf("a work of event %d after entry %d", s.last, entry)
	}
	if len(s.byParent) > MaxWorks || s.permits > MaxShardPermits || s.keptBytes > MaxKeptBytes {
		return fmt.Errorf("%d works with %d permits, whose ended workers take %d bytes",
			len(s.byParent), s.permits, s.keptBytes)
	}
	for _, of := range s.byParent {
		if of.permits.Len() > MaxPermits || of.kept > MaxKeptWorkers {
			return fmt.Errorf("work of %q has %d permits and %d ended workers", of.ID, of.permits.Len(), of.kept)
		}
		if err := of.restoredStream(); err != nil {
			return err
		}
	}
	return nil
}
