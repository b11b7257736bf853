package sender

const (
	ResendEvery  = resendEvery
	MaxQueued    = maxQueued
	FewQueued    = fewQueued
	MaxQueueTime = maxQueueTime
)
