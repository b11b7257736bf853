package work

import "strconv"

// poison returns the arrival of a message that cannot be read.
func poison[C any](of *message, changes []Change[C], err error) *arrival[C] {
	key := "#" + strconv.FormatUint(of.Place, 10)
	if len(changes) > 0 && checkKey(changes[0].Key) == nil {
		key = changes[0].Key
	}
	return &arrival[C]{
		key: key,
		of:  of,
		parts: []part[C]{{
			Change: Change[C]{Key: key},
			unread: err,
			at:     strconv.FormatUint(of.Place, 10),
			whole:  &of.Message,
		}},
	}
}

// grouped returns the arrivals of a message: the changes of a key come together, since the message, and with it each of
// its keys, ends as a whole.
func grouped[C any](of *message, changes []Change[C]) (all []*arrival[C]) {
	byKey := map[string]*arrival[C]{}
	for i, c := range changes {
		a := byKey[c.Key]
		if a == nil {
			a = &arrival[C]{
				key: c.Key,
				of:  of,
			}
			byKey[c.Key] = a
			all = append(all, a)
		}
		c.Token = ""
		a.parts = append(a.parts, part[C]{
			Change: c,
			at:     strconv.FormatUint(of.Place, 10) + "." + strconv.Itoa(i),
			whole:  &of.Message,
			index:  i,
		})
	}
	if n := len(all); n > 0 {
		all[n-1].last = true
	}
	return all
}
