package ui

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/events"
)

func (u *UI) nodesRoutes() []api.Route {
	show := api.Route{
		Method:  http.MethodGet,
		Pattern: Root + "nodes",
		Summary: "Show the nodes and the shards",
		Role:    token.Viewer,
		Scope:   api.Everything,
		Serve:   u.showNodes,
	}
	checkpoint := show
	checkpoint.Pattern, checkpoint.Summary, checkpoint.Serve = Root+"checkpoint", "Show a checkpoint", u.showCheckpoint
	download := show
	download.Pattern, download.Summary, download.Serve = Root+"checkpoint.txt", "Download a checkpoint", u.downloadCheckpoint
	export := show
	export.Pattern, export.Summary, export.Serve = Root+"shards/{shard}/export", "Download the journal of a shard", u.exportShard
	export.Class, export.Type = api.Pages, "application/x-ndjson"
	return []api.Route{show, checkpoint, download, export}
}

// nodesPage holds what the page of nodes shows.
type nodesPage struct {
	Nodes  []node
	Shards []shardRow
	// Sums over the shards that answer.
	Tasks, Live, Ready int
	Durability         string
}

// shardRow tells of one shard.
type shardRow struct {
	engine.ShardInfo
	Name string // of the owner's node, or its session
}

func (u *UI) showNodes(c *api.Call) error {
	l := u.look(c, "Nodes", "Nodes and shards")
	var members nodes
	var shards api.Shards
	l.parts(part{"nodes", "/v1/nodes", &members}, part{"shards", "/v1/shards", &shards})
	body := nodesPage{Nodes: members.Nodes}
	names := map[string]string{}
	for _, n := range members.Nodes {
		names[n.Session] = n.Name
	}
	for _, s := range shards.Shards {
		row := shardRow{s, names[s.Owner]}
		if row.Name == "" {
			row.Name = s.Owner
		}
		body.Shards = append(body.Shards, row)
		body.Tasks += s.Tasks
		body.Live += s.Live
		body.Ready += s.Ready
		if s.Durability != "" {
			body.Durability = s.Durability
		}
	}
	return l.show("nodes", body)
}

// Joined returns when the node has joined; 0 = it does not say.
func (n node) Joined() events.Millis {
	at, err := time.Parse(time.RFC3339, n.JoinedAt)
	if err != nil {
		return 0
	}
	return events.MillisOf(at)
}

// Clock says in words how far the clock is off those of the others.
func (n node) Clock() string {
	if n.ClockAheadMs == 0 {
		return "right"
	}
	return view.Clock(n.ClockAheadMs)
}

// Behind counts the entries that were not read back from the archive; -1 = nothing is archived, or nobody knows.
func (s shardRow) Behind() int64 {
	if s.Archived == 0 || s.Archived > s.Entries {
		return -1
	}
	return int64(s.Entries - s.Archived)
}

// Export returns the address from which the journal is downloaded.
func (s shardRow) Export() string { return Root + "shards/" + strconv.Itoa(s.Shard) + "/export" }

func (u *UI) showCheckpoint(c *api.Call) error {
	l := u.look(c, "Nodes", "Checkpoint")
	var is api.Checkpoint
	if err := l.get("/v1/checkpoint", &is); err != nil {
		return err
	}
	return l.show("checkpoint", is.Text)
}

func (u *UI) downloadCheckpoint(c *api.Call) error {
	var is api.Checkpoint
	if err := u.look(c, "Nodes", "Checkpoint").get("/v1/checkpoint", &is); err != nil {
		return err
	}
	c.Header().Set("Content-Disposition", `attachment; filename="checkpoint.txt"`)
	return c.Asset("text/plain; charset=utf-8", []byte(is.Text))
}

func (u *UI) exportShard(c *api.Call) error {
	shard := c.Path("shard")
	q := api.Question{Path: "/v1/export", Query: map[string][]string{"shard": {shard}}}
	return u.look(c, "Nodes", "Export").download(q, "shard-"+shard+".export")
}

// download streams the lines that the API answers with, under the name of a file.
func (l *look) download(q api.Question, name string) error {
	c := l.call
	out, end, done := c.Relay()
	defer done()
	named := false
	err := l.lines(q, func(line []byte) error {
		if !named { // what the API refuses is a page, and no file
			named = true
			c.Header().Set("Content-Disposition", `attachment; filename="`+fileName(name)+`"`)
		}
		_, err := out.Write(append(line, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return end()
}

// errLate ends a download that has not begun while its page had time.
var errLate = problem.New(problem.Timeout, "nothing has come in time: try again later")

// lines gives each line of an answer to take. The first one has to come while the page has time; the others may take as
// long as they take.
func (l *look) lines(q api.Question, take func(line []byte) error) error {
	ctx, cancel := context.WithCancelCause(l.call.Context())
	defer cancel(nil)
	late := time.AfterFunc(time.Until(l.until), func() { cancel(errLate) })
	defer late.Stop()
	err := l.api.Lines(ctx, q, func(line []byte) error {
		late.Stop()
		return take(line)
	})
	if err != nil && errors.Is(context.Cause(ctx), errLate) {
		return errLate
	}
	return err
}

// fileName keeps of a name what no system reads as anything else.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, name)
}
