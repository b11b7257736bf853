package processes_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/ledger"
	"taskledger/schedule"
)

// Two zones without summer time, of which one process has other data.
const (
	hourZone = "Africa/Lagos"  // its clocks there are an hour further ahead
	nearZone = "Africa/Maputo" // some seconds
)

// writeZone writes data of a time zone whose clocks are always so far ahead of UTC, as a directory in ZONEINFO has
// them.
func writeZone(t *testing.T, dir, name string, ahead time.Duration) {
	t.Helper()
	data := make([]byte, 44) // the header of RFC 8536, with one kind of local time and a name for it
	copy(data, "TZif")
	data[39], data[43] = 1, 4
	data = binary.BigEndian.AppendUint32(data, uint32(ahead/time.Second))
	data = append(data, "\x00\x00XXX\x00"...)
	path := filepath.Join(dir, name)
	ok(t, os.MkdirAll(filepath.Dir(path), 0o755))
	ok(t, os.WriteFile(path, data, 0o644))
}

// ticking is three nodes, and schedules in a shard whose owners die one after the other.
type ticking struct {
	*processes
	roles map[string]role
	nodes map[string]*process
	shard int
	near  time.Duration // between the clocks of two nodes in nearZone

	second []string // schedules that fire each second, from when they are set until end
	end    time.Time
	days   map[string]day
}

// day is a schedule that fires once a day, and twice in hourZone.
type day struct {
	tick time.Time // the first one, by the zone data of the test
	zone string
}

func startTicking(t *testing.T, near time.Duration) *ticking {
	t.Helper()
	zones := t.TempDir()
	writeZone(t, zones, hourZone, 2*time.Hour)
	writeZone(t, zones, nearZone, 2*time.Hour+near)
	c := &ticking{
		processes: startProcesses(t, false),
		roles:     map[string]role{"a": {Zones: zones}, "b": {Ahead: 2 * time.Second}, "c": {}},
		nodes:     map[string]*process{},
		near:      near,
		days:      map[string]day{},
	}
	for _, name := range slices.Sorted(maps.Keys(c.roles)) {
		c.start(name)
	}
	testcluster.Await(t, "shards are shared", func() bool {
		all, err := c.client.Operations().Shards(within(t, soon))
		ok(t, err)
		others, session := 0, c.session("a")
		for _, s := range all {
			switch {
			case s.Problem != "":
			case s.Owner == session:
				c.shard = s.Shard
			default:
				others++
			}
		}
		return others >= processShards/2
	})
	return c
}

func (c *ticking) start(name string) {
	c.Helper()
	r := c.roles[name]
	r.Name, r.Etcd, r.NATS, r.NKey = name, c.etcd, c.nats, c.nkey
	r.Shards, r.Slots, r.TTL = processShards, 8, processTTL
	c.nodes[name], _ = startProcess(c.T, r)
}

// owner waits until the shard has an owner, and returns its name.
func (c *ticking) owner() (name string) {
	c.Helper()
	testcluster.Await(c.T, "an owner of the schedules", func() bool {
		all, err := c.client.Operations().Shards(within(c.T, soon))
		if err != nil || all[c.shard].Problem != "" {
			return false
		}
		for name = range c.nodes {
			if c.session(name) == all[c.shard].Owner {
				return true
			}
		}
		return false
	})
	return name
}

// set makes a schedule in the shard, of a behavior of the processes, and returns its name.
func (c *ticking) set(name, behavior string, d schedule.Definition) string {
	c.Helper()
	name = idOf(c.shard, processShards, name)
	d.Behavior, d.Params = behavior, []byte(`"x"`)
	_, _, err := c.client.Schedules().Set(within(c.T, soon), name, d, 0)
	ok(c.T, err)
	return name
}

// idOf returns an id in a shard that begins with the name.
func idOf(shard, shards int, name string) string {
	for i := 0; ; i++ {
		if id := events.TaskID(fmt.Sprint(name, i)); id.Shard(shards) == shard {
			return string(id)
		}
	}
}

// setDay sets schedules whose ticks come so long from now by the data of the test, those in nearZone sooner by a's.
func (c *ticking) setDay(in time.Duration) {
	c.Helper()
	for _, zone := range []string{hourZone, nearZone} {
		at, err := time.LoadLocation(zone)
		ok(c.T, err)
		tick := time.Now().In(at).Add(in).Truncate(time.Second)
		hours := fmt.Sprint(tick.Hour())
		if zone == hourZone { // so that both data name this tick
			hours += fmt.Sprint(",", (tick.Hour()+1)%24)
		}
		name := c.set(fmt.Sprintf("%s-%d-", filepath.Base(zone), tick.Unix()), "echo", schedule.Definition{
			Cron:     fmt.Sprintf("%d %d %s * * ?", tick.Second(), tick.Minute(), hours),
			Timezone: zone,
		})
		c.days[name] = day{tick, zone}
	}
}

func (c *ticking) get(name string) schedule.Schedule {
	c.Helper()
	s, err := c.client.Schedules().Get(within(c.T, soon), name)
	ok(c.T, err)
	return s
}

// run lets owners decide ticks of so long each before they die, until every tick is decided. The clock of the first
// one jumps before it dies.
func (c *ticking) run(life, jump time.Duration) {
	c.Helper()
	jumps := jump != 0
	for last := events.MillisOf(time.Now()); ; {
		var now schedule.Schedule
		testcluster.Await(c.T, "ticks are decided", func() bool {
			now = c.get(c.second[0])
			return now.Next == 0 || now.Last >= last+events.Millis(life.Milliseconds())
		})
		if now.Next == 0 {
			break
		}
		name := c.owner()
		if jumps {
			r := c.roles[name]
			r.Ahead += jump
			c.roles[name] = r
			c.nodes[name].order(order{Clock: &r.Ahead})
			jumps = false
		} else {
			c.nodes[name].kill()
			c.owner() // another node
			c.start(name)
		}
		last = now.Last
	}
	testcluster.Await(c.T, "the last tick of each second", func() bool {
		return !slices.ContainsFunc(c.second, func(name string) bool { return c.get(name).Next != 0 })
	})
	testcluster.Await(c.T, "the ticks of the day", func() bool {
		for name, is := range c.days {
			if s := c.get(name); s.Last == 0 && s.Next <= events.MillisOf(is.tick) {
				return false
			}
		}
		return true
	})
}

// decided is a decision, and the entry in which it stands.
type decided struct {
	*events.Ticked
	entry uint64
}

// decisions returns when a schedule was set, its first tick, and what became of that and of those behind it, as its
// history tells it. It asserts that each decision begins where the one before, or a correction, has said.
func (c *ticking) decisions(name string) (set, first events.Millis, all []decided) {
	c.Helper()
	var next events.Millis
	for ev, err := range c.client.Ledger().History(within(c.T, soon), events.ScheduleRecord(name)) {
		ok(c.T, err)
		switch b := ev.Body.(type) {
		case *events.ScheduleSet:
			set, first, next = ev.At, b.Next, b.Next
		case *events.Ticked:
			if b.Decision == events.TickCorrected {
				next = b.Next
				continue
			}
			if b.From != next {
				c.Errorf("schedule %s: tick %d is decided, want %d", name, b.From, next)
			}
			next = b.Next
			all = append(all, decided{b, ev.Position.Ref.Entry()})
		}
	}
	return set, first, all
}

// wantSeconds asserts that each second from the first tick on was decided once, and in order.
func (c *ticking) wantSeconds(name string, first events.Millis, all []decided) {
	c.Helper()
	const second = 1000
	next, is := first, map[events.TickDecision]int{}
	for _, d := range all {
		if d.From != next {
			c.Errorf("schedule %s: tick %d is decided, want %d", name, d.From, next)
		}
		is[d.Decision] += int((d.To-d.From)/second) + 1
		next = d.To + second
	}
	if end := events.MillisOf(c.end); next != end+second {
		c.Errorf("schedule %s: the last tick that is decided is %d, want %d", name, next-second, end)
	}
	c.Logf("schedule %s: of %d ticks %d were created, %d skipped, %d missed, by %d decisions", name, (next-first)/second,
		is[events.TickCreated], is[events.TickSkipped], is[events.TickMissed], len(all))
	if is[events.TickCreated] == 0 {
		c.Errorf("no tick of schedule %s has a run", name)
	}
}

// wantDay asserts that each time of the day that a schedule names was decided once, by whichever data: the tick that
// comes within the test, and in hourZone another one an hour later, if the clock of an owner was so far ahead.
func (c *ticking) wantDay(name string, set events.Millis, all []decided) {
	c.Helper()
	is := c.days[name]
	tick, other := events.MillisOf(is.tick), events.MillisOf(is.tick.Add(-c.near))
	if is.zone == nearZone && set >= other {
		c.Logf("schedule %s was set after its tick by other data, which tells nothing", name)
		return
	}
	var ticks, shown []events.Millis
	for _, d := range all {
		if d.From != d.To {
			c.Errorf("schedule %s: ticks %d to %d are decided, want one", name, d.From, d.To)
		}
		ticks = append(ticks, d.From)
		shown = append(shown, d.To+events.Millis(d.ToOffset)*1000)
	}
	want := [][]events.Millis{{tick}, {other}}
	if is.zone == hourZone {
		want[1] = []events.Millis{tick, events.MillisOf(is.tick.Add(time.Hour))}
	}
	if !slices.ContainsFunc(want, func(w []events.Millis) bool { return slices.Equal(w, ticks) }) {
		c.Errorf("schedule %s: ticks %d are decided, want one of %d", name, ticks, want)
	}
	if slices.Sort(shown); len(slices.Compact(slices.Clone(shown))) != len(shown) {
		c.Errorf("schedule %s: ticks %d are decided, of which clocks showed the same, %d", name, ticks, shown)
	}
	c.Logf("schedule %s: ticks %d were decided, when clocks showed %d", name, ticks, shown)
}

// wantRuns asserts that each tick with a run has one, which was created in the entry of the decision, and that there
// are no other runs.
func (c *ticking) wantRuns(all map[string][]decided) {
	c.Helper()
	created := map[events.TaskID][]uint64{}
	for ev, err := range c.client.Ledger().Replay(within(c.T, soon), ledger.ReplayOptions{}) {
		ok(c.T, err)
		if ev.Kind() == events.KindCreated && events.ScheduledPrefix(ev.Task) != "" {
			created[ev.Task] = append(created[ev.Task], ev.Position.Ref.Entry())
		}
	}
	for name, decisions := range all {
		for _, d := range decisions {
			run := events.TaskID(fmt.Sprintf("%s/tick:%d", name, d.From))
			entries := created[run]
			switch delete(created, run); {
			case d.Decision != events.TickCreated:
				if len(entries) > 0 {
					c.Errorf("run %s was created in entries %d, and its tick has none", run, entries)
				}
			case d.From != d.To || d.Run != run || !slices.Equal(entries, []uint64{d.entry}):
				c.Errorf("ticks %d to %d of entry %d have run %q, which was created in entries %d",
					d.From, d.To, d.entry, d.Run, entries)
			}
		}
	}
	if len(created) > 0 {
		c.Errorf("runs without a tick: %v", created)
	}
}

// The owner of schedules is killed again and again, its clock and those of the others differ, in a proof one by an
// hour, and one process has other data of time zones. Each tick is decided once all the same, in order, without a gap,
// and has its run in the same entry.
func TestProcess_EachTickIsDecidedOnceWhateverDiesAndWhateverClocksSay(t *testing.T) {
	t.Parallel()
	jumps := map[string]time.Duration{"right": 0}
	if testkit.Whole() {
		jumps["ahead"], jumps["back"] = time.Hour, -time.Hour
	}
	for name, jump := range jumps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Busy(t)
			const setting = 10 * time.Second // more than it takes to set one schedule
			life := time.Duration(testkit.Times(4, 10)) * time.Second
			whole := time.Duration(testkit.Times(2, 12)) * life
			c := startTicking(t, life)
			c.end = time.Now().Truncate(time.Second).Add(whole + c.near + setting)
			if jump > 0 { // the shard is ahead then, and goes on at half speed
				c.end = c.end.Add(jump - setting)
			}
			c.second = []string{
				c.set("once", "echo", schedule.Definition{Cron: "* * * * * ?", End: c.end}),
				c.set("busy", "nap", schedule.Definition{Cron: "* * * * * ?", End: c.end}),
				c.set("allow", "echo", schedule.Definition{
					Cron:    "* * * * * ?",
					Overlap: schedule.Allow,
					Misfire: schedule.All,
					End:     c.end,
				}),
			}
			for i := range 5 {
				c.setDay(setting + c.near + time.Duration(i)*whole/6)
			}
			c.run(life, jump)
			all := map[string][]decided{}
			for _, name := range c.second {
				_, first, decisions := c.decisions(name)
				c.wantSeconds(name, first, decisions)
				all[name] = decisions
			}
			for name := range c.days {
				set, _, decisions := c.decisions(name)
				c.wantDay(name, set, decisions)
				all[name] = decisions
			}
			c.wantRuns(all)
			c.verify()
		})
	}
}
