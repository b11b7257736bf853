package events

import (
	"fmt"
	"slices"

	"taskledger/internal/wire"
)

const (
	// MaxTags bounds the tags of a task: lists look at all of them.
	MaxTags = 10
	// MaxTagBytes bounds a tag.
	MaxTagBytes = 64
)

// Described records the tags of a task, and the deadline of the run that a submit begins. It replaces both.
type Described struct {
	Tags     []string // in order, each once
	Deadline Millis   // of the run; 0 = none
}

// Kind implements Body.
func (*Described) Kind() Kind { return KindDescribed }

func (*Described) payload() Payload { return nil }

func (b *Described) encode(w *wire.Writer) {
	w.Array(2)
	EncodeTags(w, b.Tags)
	w.Int(int64(b.Deadline))
}

func (b *Described) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(2)
	b.Tags, b.Deadline = DecodeTags(r), Millis(r.Int())
}

func (b *Described) check() error {
	if b.Deadline < 0 {
		return fmt.Errorf("deadline %d, want 0 or later", b.Deadline)
	}
	return CheckTags(b.Tags)
}

// EncodeTags writes tags as an array of texts.
func EncodeTags(w *wire.Writer, tags []string) {
	w.Array(len(tags))
	for _, tag := range tags {
		w.Text(tag)
	}
}

// DecodeTags reads what EncodeTags wrote. Of more than MaxTags it reads none, and fails.
func DecodeTags(r *wire.Reader) (tags []string) {
	n := r.Array()
	if n > MaxTags {
		r.Fail("%d tags exceed the limit of %d", n, MaxTags)
		return nil
	}
	for range n {
		tags = append(tags, r.Text())
	}
	return tags
}

// CheckTags refuses tags that no task has: more than MaxTags, not in order, one of them twice, or one that ValidateTag
// refuses.
func CheckTags(tags []string) error {
	if len(tags) > MaxTags {
		return fmt.Errorf("%d tags exceed the limit of %d", len(tags), MaxTags)
	}
	for i, tag := range tags {
		if err := ValidateTag(tag); err != nil {
			return err
		}
		if i > 0 && tags[i-1] >= tag {
			return fmt.Errorf("tag %q follows tag %q", tag, tags[i-1])
		}
	}
	return nil
}

// ValidateTag refuses a tag that is not of 1 to MaxTagBytes letters, digits and . _ - : / = + @ of ASCII.
func ValidateTag(tag string) error {
	if len(tag) == 0 || len(tag) > MaxTagBytes {
		return fmt.Errorf("tag of %d bytes, want 1 to %d", len(tag), MaxTagBytes)
	}
	for i := range len(tag) {
		if !isTagByte(tag[i]) {
			return fmt.Errorf("tag %q: want letters, digits and . _ - : / = + @ alone", tag)
		}
	}
	return nil
}

func isTagByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return slices.Contains([]byte("._-:/=+@"), c)
}
