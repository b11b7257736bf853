package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// MaxBytes bounds the text of an expression.
const MaxBytes = 512

const order = "second minute hour day-of-month month day-of-week [year]"

// aliases holds expressions by their names.
var aliases = [...]struct{ name, text string }{
	{"@annually", "0 0 0 1 1 ?"},
	{"@daily", "0 0 0 * * ?"},
	{"@hourly", "0 0 * * * ?"},
	{"@midnight", "0 0 0 * * ?"},
	{"@monthly", "0 0 0 1 * ?"},
	{"@weekly", "0 0 0 ? * SUN"},
	{"@yearly", "0 0 0 1 1 ?"},
}

// Parse reads an expression of at most MaxBytes bytes in the syntax above. Letters may be of either case. An error
// names the field with its position, what is wrong in it and the limit; where another dialect of cron seems to be
// meant, it tells the expression to write instead.
func Parse(text string) (Expression, error) {
	if len(text) > MaxBytes {
		return Expression{}, fmt.Errorf("%d bytes exceed the limit of %d", len(text), MaxBytes)
	}
	foreign := func(r rune) bool { return r > '~' || r < ' ' && !unicode.IsSpace(r) }
	if i := strings.IndexFunc(text, foreign); i >= 0 {
		return Expression{}, fmt.Errorf("byte %d is neither printable ASCII nor a space", i+1)
	}
	words := strings.Fields(strings.ToUpper(text))
	if len(words) > 0 && words[0][0] == '@' {
		return parseAlias(strings.ToLower(words[0]), words[1:])
	}
	return parseWords(words)
}

func parseAlias(name string, rest []string) (Expression, error) {
	if name == "@every" && len(rest) == 1 {
		duration := strings.ToLower(rest[0])
		every, err := parseEvery(duration)
		if err != nil {
			return Expression{}, err
		}
		return Expression{text: name + " " + duration, every: every}, nil
	}
	for _, alias := range aliases {
		if alias.name != name {
			continue
		}
		if len(rest) > 0 {
			return Expression{}, fmt.Errorf("%s stands alone, %q follows it", name, rest[0])
		}
		e, err := parseWords(strings.Fields(alias.text))
		e.text = name
		return e, err
	}
	const known = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, and @every as in @every 90s"
	return Expression{}, fmt.Errorf("%.32q is unknown: there are %s", name, known)
}

// parseWords reads 6 or 7 fields in upper case.
func parseWords(words []string) (Expression, error) {
	switch n := len(words); {
	case n == 5:
		return Expression{}, errors.New("5 fields, want 6 or 7: " + order + instead(fromUnix(words)))
	case n < 6:
		return Expression{}, fmt.Errorf("%d fields, want 6 or 7: %s", n, order)
	case n > len(fields):
		return Expression{}, fmt.Errorf("%d fields, want 6 or 7: %q follows the year", n, words[len(fields)])
	}
	e := Expression{text: strings.Join(words, " "), interval: isInterval(words[hourField])}
	for i, word := range words {
		if err := e.parseField(i, word); err != nil {
			return Expression{}, fmt.Errorf("%s (field %d): %w", fields[i].name, i+1, err)
		}
	}
	if len(words) == yearField {
		e.schedule.year = among(0, maxYear-minYear)
	}
	if (words[monthDayField] == "?") == (words[weekdayField] == "?") {
		const say = "one of day-of-month (field 4) and day-of-week (field 6) must be ?, the other one must not"
		return Expression{}, errors.New(say + instead(withQuestion(words)))
	}
	return e, nil
}

func (e *Expression) parseField(i int, word string) (err error) {
	f, s := &fields[i], &e.schedule
	of := map[int]*set{secondField: &s.second, minuteField: &s.minute, hourField: &s.hour, monthField: &s.month}
	switch {
	case word == "?" && (i == monthDayField || i == weekdayField):
	case strings.Contains(word, "?"):
		err = errors.New("? stands alone, and only in day-of-month and day-of-week")
	case i == monthDayField:
		s.days, err = parseMonthDays(word)
	case i == weekdayField:
		s.days, err = parseWeekdays(word)
	case i == yearField:
		s.year, err = f.list(word, minYear)
	default:
		*of[i], err = f.list(word, 0)
	}
	return err
}

// instead asks whether an expression is meant, if it is one. Whoever writes weekdays as numbers may count them from 0.
func instead(words []string) string {
	if len(words) < 6 || slices.Contains(words, "") {
		return ""
	}
	if _, err := parseWords(words); err != nil {
		return ""
	}
	text := fmt.Sprintf("; did you mean %q?", strings.Join(words, " "))
	if strings.ContainsAny(words[weekdayField], "1234567") {
		text += " Weekdays go from 1 = SUN to 7 = SAT."
	}
	return text
}
