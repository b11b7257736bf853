package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"taskledger/engine/internal/command"
	"taskledger/store"
)

// errNobody reports that nobody listens on the subject of a request.
var errNobody = errors.New("nobody listens")

// requestOnBus sends a request once and returns its answer. of stands in the subject of the answer.
func (c *Client) requestOnBus(ctx context.Context, subject, of string, data []byte) (command.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inbox := "node." + c.sender.ID() + "." + of + "." + randomID()
	got := make(chan store.Message, 1)
	err := c.cfg.Bus.Subscribe(ctx, inbox, "", func(m store.Message) {
		select {
		case got <- m:
		default:
		}
	})
	if err != nil {
		return command.Answer{}, err
	}
	if err := c.cfg.Bus.Publish(subject, inbox, data); err != nil {
		return command.Answer{}, err
	}
	select {
	case m := <-got:
		if m.NoResponders {
			return command.Answer{}, errNobody
		}
		answers, err := command.DecodeAnswers(m.Data)
		if err != nil {
			return command.Answer{}, fmt.Errorf("answer cannot be read: %w", err)
		}
		if len(answers) != 1 {
			return command.Answer{}, fmt.Errorf("answer cannot be read: it has %d parts", len(answers))
		}
		return answers[0], nil
	case <-ctx.Done():
		return command.Answer{}, context.Cause(ctx)
	}
}

// awaitBus waits until the bus is connected, as it is soon after the start.
func (c *Client) awaitBus(ctx context.Context) error {
	if c.cfg.Bus == nil {
		return errors.New("there is no bus")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	up, once := make(chan struct{}), sync.Once{}
	err := c.cfg.Bus.Notify(ctx, func(connected bool) {
		if connected {
			once.Do(func() { close(up) })
		}
	})
	if err != nil {
		return err
	}
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the bus is not connected: %w", context.Cause(ctx))
	}
}
