package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Circles returns every package that has a circle of more files than its limit: files each of which uses, directly or
// through the others, what every other one declares.
func (t *Types) Circles(most Limits) []string {
	sizes, names := map[string]int{}, map[string]string{}
	for _, p := range t.packages {
		circle := t.circle(p)
		sizes[p.dir], names[p.dir] = len(circle), strings.Join(circle, " ")
	}
	return most.broken(sizes, func(dir string, size, limit int) string {
		return fmt.Sprintf("%s: %d files use each other in a circle, at most %d: %s", dir, size, limit, names[dir])
	})
}

// circle returns the files of the largest circle of a package: the largest strongly connected part of their graph.
func (t *Types) circle(p *checked) []string {
	uses := t.uses(p)
	var best []string
	c := circles{uses: uses, index: map[string]int{}, low: map[string]int{}, found: func(part []string) {
		if len(part) > len(best) {
			best = part
		}
	}}
	for _, f := range p.files {
		c.visit(t.fset.Position(f.Package).Filename)
	}
	for i, name := range best {
		best[i] = path.Base(name)
	}
	slices.Sort(best)
	return best
}

// uses returns by file in which other files what it uses is declared: names of the package, methods and fields.
func (t *Types) uses(p *checked) map[string][]string {
	uses := map[string][]string{}
	for name, object := range p.info.Uses {
		if object.Pkg() != p.types || !object.Pos().IsValid() {
			continue
		}
		from, to := t.fset.Position(name.Pos()).Filename, t.fset.Position(object.Pos()).Filename
		if from != to && !slices.Contains(uses[from], to) {
			uses[from] = append(uses[from], to)
		}
	}
	return uses
}

// circles finds the strongly connected parts of a graph (Tarjan).
type circles struct {
	uses       map[string][]string
	index, low map[string]int // from 1 on; low is 0 once the part of a node is found
	path       []string
	found      func(part []string)
}

func (c *circles) visit(name string) {
	if c.index[name] != 0 {
		return
	}
	c.index[name] = len(c.index) + 1
	c.low[name] = c.index[name]
	c.path = append(c.path, name)
	for _, next := range c.uses[name] {
		if c.index[next] == 0 {
			c.visit(next)
		}
		if c.low[next] != 0 {
			c.low[name] = min(c.low[name], c.low[next])
		}
	}
	if c.low[name] != c.index[name] {
		return
	}
	at := slices.Index(c.path, name)
	part := slices.Clone(c.path[at:])
	c.path = c.path[:at]
	for _, member := range part {
		c.low[member] = 0
	}
	c.found(part)
}
