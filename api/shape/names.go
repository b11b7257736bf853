package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"taskledger/api/problem"
)

// maxDepth bounds how deep a body may be nested.
const maxDepth = 64

// maxBits bounds the fields of an object that have a bit.
const maxBits = 64

// level is an object or array of a shape that is open.
type level struct {
	*Shape
	named bool            // a name comes next
	name  []byte          // the last name, as it is written
	next  *Shape          // the shape of the next value
	want  string          // names the kind that the next value must have; "" = it may be null
	seen  uint64          // bits of the first fields that were there
	names map[string]bool // the other names that were there
	n     int             // elements and fields before this one
}

// check refuses a body that is nested deeper than maxDepth, before any decoder recurses into it. It also refuses null
// in place of a value that must be there, and a name that the type lacks or that stands twice: encoding/json takes a
// name in any case, and the last of two. It leaves malformed JSON to the decoder.
func check(data []byte, is *Shape) error {
	depth := 0
	var room [4]level
	open := room[:0] // the outermost ones; below them are values of any names
	for i := 0; i < len(data); i++ {
		var top *level
		if len(open) > 0 && len(open) == depth {
			top = &open[depth-1]
		}
		switch data[i] {
		case '"':
			end := textEnd(data, i)
			if top != nil && top.named && end < len(data) {
				if err := top.meet(data[i+1 : end]); err != nil {
					return misnamed(open, err)
				}
			}
			i = end
		case '{', '[':
			next := is
			if depth > 0 {
				next = nil
			}
			if top != nil {
				next = top.next
			}
			if depth++; depth > maxDepth {
				return problem.New(problem.Malformed, "body: nested deeper than %d levels", maxDepth)
			}
			switch object := data[i] == '{'; {
			case next == nil || object == (next.kind == reflect.Slice):
			case object:
				open = append(open, level{Shape: next, named: true})
			default:
				open = append(open, level{Shape: next, next: next.of, want: next.holds})
			}
		case 'n':
			if top != nil && !top.named && top.want != "" && bytes.HasPrefix(data[i:], []byte("null")) {
				return misnamed(open, fmt.Errorf("want %s, got the JSON type null", top.want))
			}
		case '}', ']':
			if top != nil {
				open = open[:depth-1]
			}
			if depth--; depth < 0 {
				return nil
			}
		case ':':
			if top != nil {
				top.named = false
			}
		case ',':
			if top != nil {
				top.n++
				top.named = top.kind != reflect.Slice
			}
		}
	}
	return nil
}

// textEnd returns where the closing quote of a text is, or the end of the data.
func textEnd(data []byte, quote int) int {
	for at := quote + 1; ; {
		n := bytes.IndexByte(data[at:], '"')
		if n < 0 {
			return len(data)
		}
		end, escapes := at+n, 0
		for data[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
		at = end + 1
	}
}

// meet takes a name in. Its error lacks the name.
func (l *level) meet(name []byte) error {
	l.name = name
	if bytes.IndexByte(name, '\\') >= 0 {
		var text string
		if json.Unmarshal(bytes.Join([][]byte{{'"'}, name, {'"'}}, nil), &text) != nil {
			return nil // no JSON
		}
		l.name = []byte(text)
	}
	i := 0
	for i < len(l.fields) && l.fields[i].name != string(l.name) {
		i++
	}
	switch {
	case l.kind == reflect.Map:
		l.next, l.want = l.of, l.holds
	case i == len(l.fields):
		return l.unknown()
	default:
		l.next, l.want = l.fields[i].is, l.fields[i].want
	}
	if l.kind == reflect.Map || i >= maxBits {
		return l.keep(string(l.name))
	}
	if l.seen&(1<<i) != 0 {
		return errTwice
	}
	l.seen |= 1 << i
	return nil
}

func (l *level) keep(name string) error {
	if l.names[name] {
		return errTwice
	}
	if l.names == nil {
		l.names = map[string]bool{}
	}
	l.names[name] = true
	return nil
}

func (l *level) unknown() error {
	for _, f := range l.fields {
		if strings.EqualFold(f.name, string(l.name)) {
			return fmt.Errorf("the field is named %s", f.name)
		}
	}
	return errors.New("the request has no such field")
}

var errTwice = errors.New("it is there more than once")

// misnamed is a problem with the last name of the innermost level.
func misnamed(open []level, why error) *problem.Problem {
	var at strings.Builder
	for i := range open {
		switch l := &open[i]; {
		case l.kind == reflect.Slice:
			fmt.Fprintf(&at, "[%d]", l.n)
		case i > 0:
			at.WriteString("." + Clip(string(l.name)))
		default:
			at.WriteString(Clip(string(l.name)))
		}
	}
	p := problem.New(problem.Malformed, "%s: %s", at.String(), why)
	p.Field = at.String()
	return p
}
