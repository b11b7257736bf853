package trees

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// token tells a time up to which all changes of the source are in the target, and a number that makes it the only one
// of its kind. As text it is the time, a slash and the number; a time alone will do.
type token struct {
	at     time.Time
	number uint64
}

// String returns the text of the token.
func (t token) String() string {
	return t.at.UTC().Format(time.RFC3339Nano) + "/" + strconv.FormatUint(t.number, 10)
}

func parseToken(text string) (t token, err error) {
	at, number, numbered := strings.Cut(text, "/")
	if t.at, err = time.Parse(time.RFC3339Nano, at); err == nil && numbered {
		t.number, err = strconv.ParseUint(number, 10, 64)
	}
	if err != nil {
		return t, fmt.Errorf("token %.64q, want a time as of RFC 3339: %w", text, err)
	}
	return t, nil
}
