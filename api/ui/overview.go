package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/events"
	"taskledger/task"
)

func (u *UI) overviewRoutes() []api.Route {
	return []api.Route{{
		Method:  http.MethodGet,
		Pattern: Root + "{$}",
		Summary: "Show what needs attention, the nodes, and how much there is",
		Role:    token.Viewer,
		Scope:   api.ItsTasks,
		Serve:   u.overview,
	}}
}

// overview holds the parts of the first page.
type overview struct {
	Attention []attention
	Statuses  []statusCount
	Behaviors []behaviorCount
	Partial   bool // it counts the newest tasks alone
	Nodes     []node
	Empty     bool     // there is no task yet
	Lately    *drawing // of the last quarter of an hour; nil = it is not shown
}

// attention is something that somebody should look at.
type attention struct {
	Text  string
	Since events.Millis
	At    string // address of a page that says more; "" = none
}

type statusCount struct {
	Status task.Status
	Tasks  int64
}

// behaviorCount counts the tasks of a behavior.
type behaviorCount struct {
	Behavior string
	ByStatus [task.Failure + 1]int64
}

// waitsTooLong bounds the wait of a task that may start: after that it needs attention.
const waitsTooLong = time.Minute

func (u *UI) overview(c *api.Call) error {
	l := u.look(c, "Overview", "Overview")
	var counted api.Behaviors
	var members nodes
	var shards api.Shards
	var waiting attentionOfSome
	var looking sync.WaitGroup
	if l.By.Limited() { // shards tell of all tasks
		looking.Go(func() { waiting = l.waiting() })
	}
	l.parts(
		part{"counts", "/v1/behaviors", &counted},
		part{"nodes", "/v1/nodes", &members},
		part{"shards", "/v1/shards", &shards},
	)
	looking.Wait()
	body := overview{Partial: counted.Partial, Nodes: members.Nodes}
	body.Statuses, body.Behaviors = sums(counted.Counts)
	body.Empty = len(counted.Counts) == 0 && len(counted.Missing) == 0 && len(l.Missing) == 0
	l.lacks("counts", counted.Missing)
	l.lacks("tasks that wait", waiting.missing)
	l.misses("tasks that wait", waiting.err)
	if !l.By.Limited() {
		body.Lately = draw(u.cfg.Trend.Points())
	}
	body.Attention = slices.Concat(ofShards(&shards), ofNodes(members.Nodes), ofPauses(counted.Paused), waiting.needs)
	return l.show("overview", body)
}

// sums adds up counts by status, and by behavior, those with most tasks first.
func sums(counts []task.Count) (statuses []statusCount, behaviors []behaviorCount) {
	for s := task.Created; s <= task.Failure; s++ {
		statuses = append(statuses, statusCount{Status: s})
	}
	for _, n := range counts {
		statuses[n.Status-task.Created].Tasks += n.Tasks
		at := slices.IndexFunc(behaviors, func(b behaviorCount) bool { return b.Behavior == n.Behavior })
		if at < 0 {
			at, behaviors = len(behaviors), append(behaviors, behaviorCount{Behavior: n.Behavior})
		}
		behaviors[at].ByStatus[n.Status] += n.Tasks
	}
	slices.SortStableFunc(behaviors, func(x, y behaviorCount) int { return cmp.Compare(y.Tasks(), x.Tasks()) })
	return statuses, behaviors
}

// Tasks counts the tasks of all statuses.
func (b behaviorCount) Tasks() (n int64) {
	for _, some := range b.ByStatus {
		n += some
	}
	return n
}

// ofShards tells what shards need. Where many need the same, they are told together.
func ofShards(all *api.Shards) (needs []attention) {
	var behind, overdue []int
	var entries uint64
	var attempts, waiting int64
	var since, waitingSince events.Millis
	more := ""
	about := map[string][]int{} // shards by what is told of them
	var texts []string
	for i := range all.Shards {
		s := &all.Shards[i]
		text := cmp.Or(s.Problem, s.Degraded)
		if s.Problem == "" && s.Refuses != "" {
			text = "New tasks are refused: " + s.Refuses
		}
		if text != "" {
			if about[text] == nil {
				texts = append(texts, text)
			}
			about[text] = append(about[text], s.Shard)
		}
		if s.Behind > 0 {
			behind, entries = append(behind, s.Shard), entries+s.Behind
		}
		if s.WaitingSince != 0 {
			if waiting += s.Waiting; s.WaitingMore {
				more = " or more"
			}
			if waitingSince == 0 || s.WaitingSince < waitingSince {
				waitingSince = s.WaitingSince
			}
		}
		if s.Overdue > 0 {
			overdue, attempts = append(overdue, s.Shard), attempts+s.Overdue
			if since == 0 || s.OverdueSince < since {
				since = s.OverdueSince
			}
		}
	}
	if waitingSince != 0 {
		needs = append(needs, waitingOf(waiting, waitingSince, more))
	}
	for _, text := range texts {
		needs = append(needs, attention{Text: shardsOf(about[text]) + ": " + text})
	}
	if len(behind) > 0 {
		needs = append(needs, attention{
			Text: fmt.Sprintf("%s: the archive is behind, it lacks %d entries that it was to hold a minute ago",
				shardsOf(behind), entries),
			At: Root + "nodes",
		})
	}
	if len(overdue) > 0 {
		needs = append(needs, attention{
			Text:  fmt.Sprintf("%s: attempts run on although their time-out is over: %d", shardsOf(overdue), attempts),
			Since: since,
			At:    Root + "tasks?" + url.Values{"substatus": {task.SubRunning.String()}}.Encode(),
		})
	}
	return needs
}

// shardsOf names shards by their numbers.
func shardsOf(numbers []int) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("Shard %d", numbers[0])
	}
	return "Shards " + numbersOf(numbers)
}

func ofNodes(all []node) (needs []attention) {
	for _, n := range all {
		if n.ClockAheadMs != 0 {
			needs = append(needs, attention{Text: fmt.Sprintf("The clock of node %s is %s", n.Name, view.Clock(n.ClockAheadMs))})
		}
	}
	return needs
}

func ofPauses(all []task.Pause) (needs []attention) {
	for _, p := range all {
		needs = append(needs, attention{
			Text:  "Paused: " + p.String(),
			Since: p.Since,
			At:    Root + "tasks?" + url.Values{"behavior": {p.Behavior}}.Encode(),
		})
	}
	return needs
}

// attentionOfSome tells what some tasks need, as far as it was found out.
type attentionOfSome struct {
	needs   []attention
	missing []api.Missing
	err     error
}

// mostLooked bounds the pages of tasks that may start which one look at the overview reads.
const mostLooked = 5

// waiting looks through the tasks that may start, of those that a token is for, for some that have waited for too long.
// When the first of them could start it tells where it has seen them all.
func (l *look) waiting() (found attentionOfSome) {
	ask := url.Values{
		"substatus":  {task.SubReady.String()},
		"created-to": {l.Now.Add(-waitsTooLong).UTC().Format(time.RFC3339)},
		"limit":      {"1000"},
	}
	n, oldest, through := int64(0), events.Millis(0), false
	for range mostLooked {
		var page api.TaskPage
		if found.err = l.get("/v1/tasks?"+ask.Encode(), &page); found.err != nil {
			break
		}
		for _, t := range page.Tasks {
			if l.Now.Sub(t.Since.Time()) < waitsTooLong {
				continue
			}
			if n++; oldest == 0 || t.Since < oldest {
				oldest = t.Since
			}
		}
		found.missing = page.Missing
		if through = page.Cursor == "" || page.Through; through {
			break
		}
		ask.Set("cursor", page.Cursor)
	}
	switch {
	case through && n > 0:
		found.needs = append(found.needs, waitingOf(n, oldest, ""))
	case n > 0:
		found.needs = append(found.needs, waitingOf(n, 0, " or more"))
	case !through && found.err == nil:
		found.err = problem.New(problem.Overloaded, "there are more than a page looks at")
	}
	return found
}

// waitingOf tells of tasks that may start and have waited for too long.
func waitingOf(n int64, since events.Millis, more string) attention {
	text := fmt.Sprintf("%d tasks%s may start and have waited for more than a minute", n, more)
	if n == 1 && more == "" {
		text = "A task may start and has waited for more than a minute"
	}
	return attention{
		Text:  text,
		Since: since,
		At:    Root + "tasks?" + url.Values{"substatus": {task.SubReady.String()}}.Encode(),
	}
}
