package check

import (
	"time"

	"taskledger/integration/robustness/history"
)

// JudgeWithin is Judge with another limit for the search.
func JudgeWithin(run *history.Run, limit time.Duration) Judgement { return judgeWithin(run, limit) }
