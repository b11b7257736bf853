package segmentation

// texts holds the combinations of characters, one of each position, in the order of their bytes: UTF-8 sorts as code
// points do, and no character's bytes begin another's.
type texts struct {
	alphabets []alphabet
	depth     int64
}

// count returns the number of combinations, and false if there are more than most.
func (t texts) count(most int64) (int64, bool) {
	n := int64(1)
	for range t.depth {
		for _, a := range t.alphabets {
			if n *= a.size(); n > most { // at most 10^9 times 2^21
				return 0, false
			}
		}
	}
	return n, true
}

// at returns the combination at place i, from 0 on.
func (t texts) at(i int64) string {
	text := make([]rune, t.depth*int64(len(t.alphabets)))
	for place := len(text) - 1; place >= 0; place-- {
		a := t.alphabets[place%len(t.alphabets)]
		n := a.size()
		text[place] = a.at(i % n)
		i /= n
	}
	return string(text)
}

// interval returns the texts between the combinations at the places i-1 and i, where last is the number of
// combinations. The first interval begins below all texts, the last one ends above them.
func (t texts) interval(i, last int64) Content {
	c := Content{Kind: Interval}
	if i > 0 {
		c.Lower = t.at(i - 1)
	}
	if i < last {
		c.Upper = t.at(i)
	}
	return c
}
