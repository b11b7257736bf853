package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/store"
)

const (
	maxQuestionName    = 48
	maxQuestionBytes   = 64 << 10 // of a question, and of an answer
	maxQuestionProblem = 1 << 10  // bytes of what is told of a function that fails
	maxQuestions       = 4        // that a node answers at once
	questionWithin     = 3 * time.Second
)

// ErrNoQuestion reports that NodeConfig.Questions of the node that was asked has no question of the name.
var ErrNoQuestion = errors.New("the program of the node answers no such question")

// Question answers what others ask a node about itself with Operations.Ask. Question and answer have 64 KiB at most.
// The caller of Ask gets the text of its error, up to 1 KiB, and of a panic likewise. Up to four calls are under way
// at once, whatever their names. ctx ends after 3 s, or with the session; a call that goes on keeps one of the four
// places.
type Question func(ctx context.Context, question []byte) (answer []byte, err error)

// questionMessage asks a node.
type questionMessage struct {
	Name     string
	Question []byte
}

func questionSubject(session string) string { return "node." + session + ".ask" }

func checkQuestions(all map[string]Question) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := checkQuestionName("questions", name); err != nil {
			return err
		}
		if all[name] == nil {
			return &store.InvalidError{Field: "questions", Problem: name + " is nil"}
		}
	}
	return nil
}

func checkQuestionName(field, name string) error {
	ok := name != "" && len(name) <= maxQuestionName
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !ok {
		problem := fmt.Sprintf("%.48q of %d bytes, want 1 to %d of [a-z0-9-]", name, len(name), maxQuestionName)
		return &store.InvalidError{Field: field, Problem: problem}
	}
	return nil
}

// answerer answers the questions that a node is asked.
type answerer struct {
	questions map[string]Question
	places    chan struct{} // taken by each call that has not returned
	exec      *worker.Executor
	sender    *sender.Sender
}

func newAnswerer(questions map[string]Question, exec *worker.Executor, sender *sender.Sender) *answerer {
	return &answerer{
		questions: questions,
		places:    make(chan struct{}, maxQuestions),
		exec:      exec,
		sender:    sender,
	}
}

// serve answers what a session is asked, while ctx lasts.
func (n *answerer) serve(ctx context.Context, bus store.Bus, session string) error {
	return bus.Subscribe(ctx, questionSubject(session), "", func(msg store.Message) {
		if msg.Reply == "" {
			return
		}
		tell := func(a command.Answer) {
			n.sender.Hint(msg.Reply, "", command.EncodeAnswers([]command.Answer{a}))
		}
		q, err := command.ReadMessage[questionMessage](msg.Data)
		if err != nil {
			tell(failedQuestion("it cannot be read: %v", err))
			return
		}
		f := n.questions[q.Name]
		if f == nil {
			tell(command.Answer{Code: command.AnswerNotFound})
			return
		}
		select {
		case n.places <- struct{}{}:
		default:
			tell(command.Overload("%d questions are under way", maxQuestions))
			return
		}
		if !n.exec.Detach(func() { n.call(ctx, f, q.Question, tell) }) {
			<-n.places
			tell(command.Overload("the node is stopping"))
		}
	})
}

// call calls the function, and tells the answer unless ctx has ended. What is deferred runs for a panic and for
// runtime.Goexit alike.
func (n *answerer) call(ctx context.Context, f Question, question []byte, tell func(command.Answer)) {
	ctx, cancel := context.WithTimeout(ctx, questionWithin)
	defer cancel()
	a := failedQuestion("it ended its goroutine")
	defer func() {
		if problem := recover(); problem != nil {
			a = failedQuestion("it panicked: %v", problem)
		}
		<-n.places // before the answer, after which a further question may come at once
		if ctx.Err() == nil {
			tell(a)
		}
	}()
	switch answer, err := f(ctx, question); {
	case err != nil:
		a = failedQuestion("%v", err)
	case len(answer) > maxQuestionBytes:
		a = command.Answer{Code: command.AnswerInvalid, Number: int64(len(answer))}
	default:
		a = command.Answer{Data: answer}
	}
}

func failedQuestion(format string, args ...any) command.Answer {
	text := strings.ToValidUTF8(fmt.Sprintf(format, args...), "")
	return command.Answer{Code: command.AnswerState, Text: events.Head(text, maxQuestionProblem)}
}
