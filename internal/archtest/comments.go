package archtest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// riddle matches a sentence that describes its subject by a clause, as in "size is what a store takes", where a verb
// reads better: "size returns the bytes of a store".
var riddle = regexp.MustCompile(`(?:^|[.!?] )((?:[^\s.!?]\S* ){1,4}(?:is|are) (?:what|who|how|that|those|whether|of)\b)`)

// slack is the number of comments that may go before Comments asks for a lower limit.
const slack = 20

// Comments counts the comments with a sentence of the form "X is what|who|how|that|those|whether|of ...", including
// those of tests. Adjacent lines count as one comment. Above the limit, it returns the comments of the three files with
// most of them. More than 20 below the limit, it asks for a lower one, so that the limit can only fall.
func (s *Source) Comments(limit int) []string {
	count, byFile := 0, map[string][]string{}
	for _, f := range s.files {
		for _, group := range f.ast.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			if m := riddle.FindStringSubmatch(text); m != nil {
				count++
				byFile[f.path] = append(byFile[f.path], fmt.Sprintf("%s: %s ...", s.at(group), m[1]))
			}
		}
	}
	switch {
	case count > limit:
		const say = `%d comments read "X is what ...", at most %d: say what X does, holds or returns`
		return append([]string{fmt.Sprintf(say, count, limit)}, slices.Concat(largest(byFile, 3)...)...)
	case count < limit-slack:
		const say = `%d comments read "X is what ...": lower the limit from %d to %d`
		return []string{fmt.Sprintf(say, count, limit, count)}
	}
	return nil
}

// largest returns the n longest lists, the longest first, and those of equal length in the order of their keys.
func largest(lists map[string][]string, n int) [][]string {
	keys := slices.SortedFunc(maps.Keys(lists), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(lists[b]), len(lists[a])), cmp.Compare(a, b))
	})
	var longest [][]string
	for _, key := range keys[:min(n, len(keys))] {
		longest = append(longest, lists[key])
	}
	return longest
}
