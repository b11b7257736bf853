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
	return m.place > 0 && !m.made.Equal(is.Created) && is.Config.Description != description && is.AckFloor.Stream >= m.place
}

// Mark implements feed.Marked.
func (u *Updates) Mark() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	place, known := u.queue.First()
	if !known || u.of.made.IsZero() {
		return ""
	}
	is := u.of
	is.place = place
	return is.String()
}

// Resume implements feed.Marked. A mark of another stream or consumer tells nothing of this one.
func (u *Updates) Resume(text string) {
	m, ok := parseMark(text)
	if ok && m.stream == u.cfg.Stream && m.consumer == u.cfg.Consumer {
		u.has.before = m
	} else if text != "" {
		u.cfg.Log.Warn("what was recorded is no place of this consumer: it goes on where its consumer does",
			"stream", u.cfg.Stream, "consumer", u.cfg.Consumer, "recorded", text)
	}
}

// compare forgets the mark of an attempt before this one if the stream was made again since.
func (u *Updates) compare(streamMade time.Time) {
	if before := &u.has.before; before.place > 0 && !before.streamMade.Equal(streamMade) {
		u.cfg.Log.Warn("the stream was deleted and made again: all of its messages are new",
			"stream", u.cfg.Stream, "consumer", u.cfg.Consumer)
		*before = mark{}
	}
}

// known notes which stream and consumer are read, for marks.
func (u *Updates) known() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of = mark{
		stream:     u.cfg.Stream,
		streamMade: u.has.streamMade,
		consumer:   u.cfg.Consumer,
		made:       u.has.made,
	}
}

// description says who reads a consumer that was made here.
const description = "read by one stream of taskledger alone"
