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

// EncodeTags writes tags as an array of texts.
func EncodeTags(w *wire.Writer, tags []string) {
	w.Array(len(tags))
	for _, tag := range tags {
		w.Text(tag)
	}
}

// DecodeTags reads what EncodeTags wrote; whether a task can have the tags is for CheckTags to say.
func DecodeTags(r *wire.Reader) (tags []string) {
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
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
