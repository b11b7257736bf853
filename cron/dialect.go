package cron

import (
	"slices"
	"strconv"
	"strings"
)

// fromUnix returns the six fields that were probably meant by the five of Unix cron, nil where there are none: cron
// takes a day that matches either field for days, which no expression of six fields says.
func fromUnix(words []string) []string {
	six := slices.Concat([]string{"0"}, words)
	var weekdays []string
	for element := range strings.SplitSeq(words[4], ",") {
		weekdays = append(weekdays, unixWeekdays(element))
	}
	six[weekdayField] = strings.Join(weekdays, ",")
	return withQuestion(six)
}

// unixWeekdays rewrites an element of a list of weekdays in which 0 and 7 are SUN.
func unixWeekdays(text string) string {
	span, step, stepped := strings.Cut(text, "/")
	if span == "0-6" || span == "0-7" {
		span = "*"
	}
	from, to, ranged := strings.Cut(span, "-")
	span = unixWeekday(from, stepped)
	if ranged {
		span += "-" + unixWeekday(to, stepped)
	}
	if stepped {
		span += "/" + step
	}
	return span
}

// unixWeekday returns the name of a weekday, or its number from 1 = SUN on. It leaves alone what is not 0 to 7.
func unixWeekday(text string, number bool) string {
	n, err := strconv.ParseUint(text, 10, 8)
	switch {
	case err != nil || n > 7:
		return text
	case number:
		return strconv.Itoa(int(n%7) + 1)
	}
	return fields[weekdayField].names[n%7*3:][:3]
}

// withQuestion puts the ? in the place of the day field that says nothing, if there is one. It returns nil where both
// fields say something.
func withQuestion(words []string) []string {
	words = slices.Clone(words)
	switch monthDay, weekday := words[monthDayField], words[weekdayField]; {
	case monthDay == "?" && weekday == "?":
		words[monthDayField] = "*"
	case monthDay == "?" || weekday == "?":
	case weekday == "*":
		words[weekdayField] = "?"
	case monthDay == "*":
		words[monthDayField] = "?"
	default:
		return nil
	}
	return words
}
