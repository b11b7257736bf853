package natsbus

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// mark tells how far a stream was acknowledged by its consumer. The zero value tells nothing.
type mark struct {
	stream     string
	streamMade time.Time
	consumer   string
	made       time.Time // the consumer
	place      uint64    // every message before it is acknowledged
}

// String returns the text that parseMark reads.
func (m mark) String() string {
	return strings.Join([]string{
		m.stream,
		strconv.FormatUint(m.place, 10),
		m.consumer,
		m.streamMade.UTC().Format(time.RFC3339Nano),
		m.made.UTC().Format(time.RFC3339Nano),
	}, "/")
}

// parseMark reads the text of a mark. ok is false if it is none.
func parseMark(text string) (m mark, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 5 {
		return m, false
	}
	place, wrong := strconv.ParseUint(parts[1], 10, 64)
	streamMade, wrong2 := time.Parse(time.RFC3339Nano, parts[3])
	made, wrong3 := time.Parse(time.RFC3339Nano, parts[4])
	if wrong != nil || wrong2 != nil || wrong3 != nil || place == 0 {
		return m, false
	}
	return mark{
		stream:     parts[0],
		streamMade: streamMade,
		consumer:   parts[2],
		made:       made,
		place:      place,
	}, true
}

// passed reports whether somebody has made the consumer again since, in a way that passes messages over.
func (m mark) passed(is *jetstream.ConsumerInfo) bool {
	return m.place > 0 && !m.made.Equal(is.Created) && is.Config.Description != description &&
		is.AckFloor.Stream >= m.place
}
