package engine

import (
	"context"
	"errors"
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/internal/message"
	"taskledger/store"
	"taskledger/task"
)

// Ask asks a node, by the id of its session, a question about itself that its program answers: see
// NodeConfig.Questions. It travels over the bus alone, and once: nothing should depend on an answer.
//
// The error wraps store.ErrUnavailable without a bus, where no such session listens, and where no answer comes within 3
// s or before ctx ends; ErrNoQuestion where the program has no question of the name. It is a *task.OverloadError where
// four questions are under way, a *task.LimitError of the field "question" or "answer", a *store.InvalidError for a
// session or a name that breaks the rules, and else tells what became of the function. Ask may be called concurrently.
func (o Operations) Ask(ctx context.Context, session, name string, question []byte) ([]byte, error) {
	if !store.IsSessionID(session) {
		return nil, &store.InvalidError{Field: "session", Problem: fmt.Sprintf("%.64q is no session", session)}
	}
	if err := checkQuestionName("name", name); err != nil {
		return nil, err
	}
	if n := len(question); n > maxQuestionBytes {
		return nil, &task.LimitError{Field: "question", Limit: maxQuestionBytes, Got: int64(n)}
	}
	ctx, cancel := context.WithTimeout(ctx, questionWithin)
	defer cancel()
	err := o.c.gate.pass(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask node %s: %w", session, err)
	}
	var a command.Answer
	if err = o.c.awaitBus(ctx); err == nil {
		data := message.Encode(questionMessage{Name: name, Question: question})
		a, err = o.c.requestOnBus(ctx, questionSubject(session), "ask", data)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask node %s: %w: %w", session, store.ErrUnavailable, err)
	case a.Code == command.AnswerOK:
		return a.Data, nil
	case a.Code == command.AnswerNotFound:
		err = ErrNoQuestion
	case a.Code == command.AnswerInvalid:
		err = &task.LimitError{Field: "answer", Limit: maxQuestionBytes, Got: a.Number}
	case a.Code == command.AnswerState:
		err = errors.New(a.Text)
	default:
		err = a.Err("")
	}
	return nil, fmt.Errorf("question %s of node %s: %w", name, session, err)
}
