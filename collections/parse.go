package collections

import (
	"cmp"
	"encoding/json"
	"slices"

	"go.yaml.in/yaml/v4"

	"taskledger/events"
)

const (
	// MaxCollections bounds the collections of a file.
	MaxCollections = 10_000
	// MaxParamBytes bounds the parameters of all collections of a file together: they may inherit most of them.
	MaxParamBytes = 16 << 20
)

// Parse reads a file; its name stands in what is told of it. If anything is wrong it returns no File and an
// *InvalidFileError of all problems, up to MaxProblems. Warnings, up to MaxProblems, come with either. Every place has
// a line and a column, except where the library of YAML names none.
//
// A schedule without years to come, a time zone that this process does not know, and whatever else package schedule
// refuses is a problem. Which programs, drivers in Go and time zones the nodes have is not known here.
func Parse(name string, text []byte) (*File, []Warning, error) {
	p := parser{findings: &findings{file: name}, ids: map[string]pair{}, targets: map[string]string{}}
	if root := document(p.findings, text); root != nil {
		p.root(root)
		p.nested()
	}
	if err := p.err(); err != nil {
		return nil, p.warned(), err
	}
	slices.SortFunc(p.all, func(a, b Collection) int { return cmp.Compare(a.ID(), b.ID()) })
	return &File{Collections: p.all}, p.warned(), nil
}

// parser reads one file.
type parser struct {
	*findings
	all     []Collection
	ids     map[string]pair   // by the ids that they spell
	targets map[string]string // ids of collections, by the files that they are fetched to
	fetched []target          // in the order of the file, until all are read
	count   int               // of collections
	bytes   int               // of parameters
}

// pair names a collection, and the line where it is named.
type pair struct {
	source, name string
	line         int
}

func (p *parser) root(n *yaml.Node) {
	at := &place{line: n.Line, column: n.Column}
	all, is := entries(p.findings, n, at)
	var sources []entry
	there, defaults := false, level{}
	for _, e := range all {
		switch e.key {
		case "sources":
			there = true
			sources, _ = entries(p.findings, e.node, e.at)
		case "defaults":
			keys, _ := entries(p.findings, e.node, e.at)
			defaults = levelOf(p.findings, keys)
			timing(p.findings, defaults, e.at, nil)
		default:
			p.problem(e.keyAt, "unknown key, want sources or defaults")
		}
	}
	if is && !there {
		p.problem(at.missing("sources"), "missing")
	}
	for _, e := range sources {
		if p.count <= MaxCollections && p.bytes <= MaxParamBytes {
			p.source(e, defaults)
		}
	}
}

func (p *parser) source(e entry, defaults level) {
	if err := checkID(e.key, ""); err != nil {
		p.problem(e.keyAt, "%v", err)
	}
	all, is := entries(p.findings, e.node, e.at)
	if !is {
		return
	}
	l := levelOf(p.findings, all, "collections").over(defaults)
	timing(p.findings, l, e.at, nil)
	list, there := find(all, "collections")
	if !there {
		p.problem(e.at.missing("collections"), "missing")
		return
	}
	for i, n := range elements(p.findings, list.node, list.at) {
		at := list.at.element(i, n)
		if p.count++; p.count > MaxCollections {
			p.problem(at, "more than %d collections in a file", MaxCollections)
			return
		}
		p.collection(n, at, e.key, l)
		if p.bytes > MaxParamBytes {
			p.problem(at, "the parameters of all collections up to here exceed the limit of %d bytes", MaxParamBytes)
			return
		}
	}
}

func (p *parser) collection(n *yaml.Node, at *place, source string, inherited level) {
	all, is := entries(p.findings, n, at)
	if !is {
		return
	}
	own := levelOf(p.findings, all, "name")
	l := own.over(inherited)
	c := Collection{
		Source: source,
		Name:   p.name(all, at, source),
		Driver: driver(p.findings, own, l, at),
	}
	p.target(&c, l, at)
	params, _ := json.Marshal(Params{c.Source, c.Name, c.Driver})
	c.Runs = timing(p.findings, l, at, params)
	p.bytes += len(params)
	if c.Driver.Driver == Noop && !l.has("driver") {
		p.warn(at.missing("driver"), "missing: runs do nothing, as with driver noop")
	}
	for _, key := range ofTicks {
		if own.has(key) && c.Runs.Cron == "" {
			p.warn(own[key].at, "passed over: the collection has no schedule, and so no ticks")
		}
	}
	if text := cadence(c.Runs.Cron); text != "" {
		p.warn(l.place("schedule", at), text)
	}
	p.all = append(p.all, c)
}

// name returns the name of a collection, which spells an id that no other collection has.
func (p *parser) name(all []entry, at *place, source string) string {
	e, there := find(all, "name")
	if !there {
		p.problem(at.missing("name"), "missing")
		return ""
	}
	name, is := text(p.findings, e.node, e.at)
	if !is {
		return name
	}
	sound := source
	if checkID(source, "") != nil { // which was told
		sound = "S"
	}
	if err := checkID(sound, name); name == "" {
		p.problem(e.at, "empty")
	} else if err != nil {
		p.problem(e.at, "%v", err)
	}
	id := source + "_" + name
	switch other, taken := p.ids[id]; {
	case !taken:
		p.ids[id] = pair{source, name, e.at.line}
	case other.name == name:
		p.problem(e.at, "%q is there twice: the first one is in line %d", events.Head(name, shownKey), other.line)
	case sound == source:
		p.problem(e.at, "%q of source %q and %q of source %q, line %d, have the same id, %q", events.Head(name, shownKey),
			source, other.name, other.source, other.line, id)
	}
	return name
}
