package natsbus

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/work/feed"
)

// The defaults of UpdatesConfig, and the least and the most that it may say.
const (
	DefaultAckWait       = 30 * time.Second
	DefaultMaxAckPending = 1_010
	DefaultUpdatesBatch  = 10
	DefaultTimeout       = 2 * time.Minute
	MinAckWait           = 100 * time.Millisecond
	MaxMaxAckPending     = 8_000
	MaxUpdatesBatch      = 1_000
)

// pullExpires is the time after which a request for messages ends.
const pullExpires = 5 * time.Second

// description says who reads a consumer that was made here.
const description = "read by one stream of taskledger alone"

// UpdatesConfig says which messages are read, and how. Stream and Consumer are required.
type UpdatesConfig struct {
	// Stream is the name of the JetStream stream. It has to exist. Messages that were acknowledged should stay in it for
	// a while, since what is parked by its place alone is read again. With a retention that removes them nothing is parked
	// so: the stream that reads them stops there.
	Stream string
	// Consumer is the name of the durable consumer, which nobody else may read. One that does not exist is made, and
	// begins with the first message of the stream.
	Consumer string
	// Subjects limits what is read to messages on these subjects. Default: all of the stream.
	Subjects []string
	// AckWait is the time after which a message is delivered again that is neither acknowledged nor in progress, 100 ms
	// or more. It should be well above the ten seconds after which a stream reports its messages in progress: others
	// are sent in vain, which harms nothing else. A consumer that exists keeps its own. Default DefaultAckWait.
	AckWait time.Duration
	// MaxAckPending limits how many messages are delivered and not acknowledged, 1 to MaxMaxAckPending. A consumer that
	// exists keeps its own. Default DefaultMaxAckPending.
	MaxAckPending int
	// Batch limits how many messages are requested at once, 1 to MaxUpdatesBatch. Default DefaultUpdatesBatch.
	Batch int
	// MaxBytes limits the data and the headers of a message, 1 or more. With a larger one Next returns feed.ErrTooLarge.
	// Default feed.MaxMessageBytes.
	MaxBytes int
	// Timeout is the time after which Next returns feed.ErrAway if NATS does not answer, 1 s or more. Default
	// DefaultTimeout.
	Timeout time.Duration
	// Log takes what is worth telling. Default: nothing is logged.
	Log *slog.Logger
}

// complete fills in the defaults. An error names the field that is wrong.
func (c UpdatesConfig) complete() (UpdatesConfig, error) {
	c.AckWait = cmp.Or(c.AckWait, DefaultAckWait)
	c.MaxAckPending = cmp.Or(c.MaxAckPending, DefaultMaxAckPending)
	c.Batch = cmp.Or(c.Batch, DefaultUpdatesBatch)
	c.MaxBytes = cmp.Or(c.MaxBytes, feed.MaxMessageBytes)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Subjects = slices.Clone(c.Subjects)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, name := range []struct{ field, is string }{{"stream", c.Stream}, {"consumer", c.Consumer}} {
		if !isName(name.is) {
			return c, fmt.Errorf("%s: name %q, want 1 or more of [A-Za-z0-9_-]", name.field, name.is)
		}
	}
	switch {
	case c.AckWait < MinAckWait:
		return c, fmt.Errorf("ack wait: %s, want %s or more", c.AckWait, MinAckWait)
	case c.MaxAckPending < 1 || c.MaxAckPending > MaxMaxAckPending:
		return c, fmt.Errorf("max ack pending: %d, want 1 to %d", c.MaxAckPending, MaxMaxAckPending)
	case c.Batch < 1 || c.Batch > MaxUpdatesBatch:
		return c, fmt.Errorf("batch: %d, want 1 to %d", c.Batch, MaxUpdatesBatch)
	case c.MaxBytes < 1:
		return c, fmt.Errorf("bytes: %d, want 1 or more", c.MaxBytes)
	case c.Timeout < time.Second:
		return c, fmt.Errorf("timeout: %s, want 1s or more", c.Timeout)
	}
	return c, nil
}

func isName(s string) bool {
	for i := range len(s) {
		if !isToken(s[i]) {
			return false
		}
	}
	return s != ""
}

// consumerConfig makes a consumer that begins at a place; 0: at the first message that the stream has.
func (c UpdatesConfig) consumerConfig(place uint64) jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		Durable:       c.Consumer,
		Description:   description,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       c.AckWait,
		MaxAckPending: c.MaxAckPending,
		MaxDeliver:    -1,
	}
	if place > 0 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, place
	}
	if len(c.Subjects) == 1 {
		config.FilterSubject = c.Subjects[0]
	} else {
		config.FilterSubjects = c.Subjects
	}
	return config
}

// unfit names a setting by which a consumer would lose messages, or their order; "" = none.
func (c UpdatesConfig) unfit(is jetstream.ConsumerConfig) string {
	subjects := is.FilterSubjects
	if is.FilterSubject != "" {
		subjects = []string{is.FilterSubject}
	}
	switch {
	case is.DeliverSubject != "":
		return "it pushes messages instead of being asked for them"
	case is.AckPolicy != jetstream.AckExplicitPolicy:
		return "its acknowledgements are not explicit"
	case is.MaxDeliver > 0:
		return fmt.Sprintf("it gives a message up after %d deliveries", is.MaxDeliver)
	case is.MaxAckPending < 1 || is.MaxAckPending > MaxMaxAckPending:
		return fmt.Sprintf("it lets %d messages wait for acknowledgement, want 1 to %d", is.MaxAckPending, MaxMaxAckPending)
	case is.DeliverPolicy == jetstream.DeliverLastPolicy, is.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy:
		return "it begins with the last messages and passes over those before them"
	case is.MaxRequestBatch > 0 && is.MaxRequestBatch < c.Batch:
		return fmt.Sprintf("it gives %d messages at once, want %d or more", is.MaxRequestBatch, c.Batch)
	case is.MaxRequestExpires > 0 && is.MaxRequestExpires < pullExpires:
		return fmt.Sprintf("its requests wait for %s, want %s or more", is.MaxRequestExpires, pullExpires)
	case is.PriorityPolicy != jetstream.PriorityPolicyNone:
		return "it wants requests of groups"
	case is.HeadersOnly:
		return "it delivers headers alone"
	case is.InactiveThreshold > 0:
		return fmt.Sprintf("it is removed when nobody has read it for %s", is.InactiveThreshold)
	case !maps.Equal(set(subjects), set(c.Subjects)):
		return fmt.Sprintf("it delivers the subjects %q, want %q", subjects, c.Subjects)
	}
	return ""
}

func set(all []string) map[string]bool {
	is := map[string]bool{}
	for _, s := range all {
		if s != ">" {
			is[s] = true
		}
	}
	return is
}
