package command

// AnswersWithoutRoom answers questions by why they have no answer while the store has no room.
func AnswersWithoutRoom(questions []Command, why string, info func(*Info) Answer) []Answer {
	answers := make([]Answer, len(questions))
	for i, c := range questions {
		switch c := c.(type) {
		case *Info:
			answers[i] = info(c)
		case *Await:
			answers[i].Code = AnswerStoreFull
		case *HandOver:
			answers[i] = Refused(AnswerState, "%s", why)
		default:
			answers[i] = Answer{Code: AnswerUnserved, Text: why}
		}
	}
	return answers
}
