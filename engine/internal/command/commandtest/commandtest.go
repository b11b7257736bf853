// Package commandtest makes every command in its largest form, and with each of its fields too large by one. Tests
// of rules for every command use it, and so cover a new one.
package commandtest

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/events"
	"taskledger/task"
)

// Count is one more than the highest number of a command.
func Count() (n uint64) {
	for n = 1; commands.Table.New(n) != nil; n++ {
	}
	return n
}

// The largest time and count that a policy may have.
const (
	long  = 10 * 365 * 24 * time.Hour
	often = 1_000_000
)

// Policy is the largest one.
func Policy() events.Policy {
	p, err := events.Policy{
		Timeout:     long,
		MaxAttempts: often,
		MaxLost:     often,
		LostDelay:   long,
		Backoff:     events.Backoff{Base: long, Max: long},
		Existing:    events.RunAgain,
		Priority:    events.MaxPriority,
		Retain:      long,
		RetainCount: often,
		Every:       long,
	}.Complete()
	if err != nil {
		panic(err)
	}
	return p
}

// Error is the largest one that a Complete may carry.
func Error() *events.Error {
	message := strings.Repeat("m", events.MaxPayloadBytes/2)
	e := &events.Error{Code: name, Message: message, Properties: map[string]string{}}
	for i := range events.MaxProperties {
		e.Properties[fmt.Sprintf("%08d", i)] = strings.Repeat("v", events.MaxPayloadBytes/2/events.MaxProperties-8)
	}
	return e
}

// Largest returns a command of a number in each of its largest forms that command.Check lets pass, made anew.
func Largest(op uint64) []command.Command {
	if op == (*command.Complete).Op(nil) {
		done := command.Complete{
			Task:    id,
			Started: math.MaxUint64,
			Node:    name,
			Next:    command.MaxTime,
			Wait:    math.MaxInt64 / 1_000_000 * time.Millisecond,
		}
		succeeded, failed := done, done
		succeeded.Result = payload
		failed.How, failed.Error, failed.ByPolicy, failed.Random = command.Failed, Error(), true, math.MaxUint32
		return []command.Command{&succeeded, &failed}
	}
	for _, forms := range [...]func(uint64) []command.Command{itemForms, scheduleForms, workForms} {
		if all := forms(op); all != nil {
			return all
		}
	}
	return []command.Command{largest(op)}
}

func largest(op uint64) command.Command {
	submit := command.Submit{
		Task:      id,
		Behavior:  behavior,
		Policy:    Policy(),
		Priority:  events.MaxPriority,
		NotBefore: command.MaxTime,
		Delay:     long,
		Params:    payload,
		RequestID: name,
		Merges:    true,
		RunNow:    true,
		Tags:      tags(),
		Deadline:  command.MaxTime,
	}
	switch c := commands.Table.New(op).(type) {
	case *command.Submit:
		*c = submit
		return c
	case *command.Merge:
		return &command.Merge{
			Submit:   submit,
			Life:     math.MaxUint64,
			Seq:      math.MaxUint64,
			Operator: true,
		}
	case *command.Progress:
		return &command.Progress{
			Task:     id,
			Started:  math.MaxUint64,
			Node:     name,
			Progress: events.Progressed{Done: math.MinInt64, Total: math.MinInt64, Note: name},
		}
	case *command.Operate:
		return &command.Operate{
			Task:   id,
			Do:     command.DoCancel,
			Reason: name,
			Seen:   math.MaxUint64,
		}
	case *command.Pause:
		return &command.Pause{Behavior: behavior, Paused: true, Reason: name}
	case *command.Offer:
		*c = command.Offer{Node: name, Lease: command.MaxTime, Slots: math.MaxInt}
		for range command.MaxOffered {
			c.Behaviors = append(c.Behaviors, command.OfferedBehavior{Behavior: behavior, Slots: math.MaxInt})
		}
		return c
	case *command.Reconcile:
		*c = command.Reconcile{
			Node:     name,
			Epoch:    math.MinInt64,
			Answered: math.MaxUint64,
			From:     math.MaxUint64,
			To:       math.MaxUint64,
		}
		for range command.MaxReconciled {
			c.Attempts = append(c.Attempts, command.AttemptName{Task: id, Started: math.MaxUint64})
		}
		return c
	case *command.HandOver:
		return &command.HandOver{Node: name}
	case *command.Get:
		return &command.Get{Task: id, Linear: true}
	case *command.Await:
		return &command.Await{Task: id, Life: math.MaxUint64, Run: math.MaxUint32}
	case *command.List:
		return &command.List{
			Status:      uint64(task.Failure),
			Substatus:   uint64(task.SubCancelled),
			Behavior:    behavior,
			Affinity:    string(id),
			Prefix:      string(id),
			Node:        name,
			Creator:     name,
			CreatedFrom: math.MinInt64,
			CreatedTo:   math.MinInt64,
			EndedFrom:   math.MinInt64,
			EndedTo:     math.MinInt64,
			Before:      math.MaxUint64,
			Until:       math.MinInt64,
			Limit:       math.MinInt64,
			Scan:        math.MinInt64,
			Cluster:     name,
			Work:        true,
			Tag:         tags()[0],
		}
	case *command.Tally:
		return &command.Tally{Behavior: behavior}
	case *command.Info:
		return &command.Info{Digest: true}
	case *command.Explain:
		return &command.Explain{Task: id}
	case *command.Plan:
		return &command.Plan{
			Behavior: behavior,
			Params:   payload[1:],
			Merge:    true,
			Stored:   payload[1:],
		}
	case *command.Settings:
		return &command.Settings{Linear: true}
	case *command.Barrier:
		return &command.Barrier{Number: math.MaxUint64}
	}
	panic(fmt.Sprintf("command %d has no largest form", op))
}

// tags returns as many tags as a task can have, each as long as it can be.
func tags() (all []string) {
	for i := range events.MaxTags {
		all = append(all, strings.Repeat(string(rune('a'+i)), events.MaxTagBytes))
	}
	return all
}

// Oversized returns, by the name of a field, a command of a number in its largest form with that field larger by
// one: a text, a list, the latest time, a priority or a field of a policy.
func Oversized(op uint64) map[string]command.Command {
	all := map[string]command.Command{}
	for form := range Largest(op) {
		for at := 0; ; at++ {
			c := Largest(op)[form]
			left := at
			field := grow(reflect.ValueOf(c).Elem(), reflect.TypeOf(c).Elem().Name(), &left)
			if field == "" {
				break
			}
			all[field] = c
		}
	}
	return all
}

// steps is by what a number that is a limit grows.
var steps = map[any]int64{
	command.MaxTime:           1,
	int64(events.MaxPriority): 1,
	often:                     1,
	time.Duration(long):       int64(time.Millisecond),
}

// grow makes one field of v larger, the one after *left others, and returns its name; "" when there are not so
// many. Empty fields have no part in a form.
func grow(v reflect.Value, name string, left *int) (grown string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return grow(v.Elem(), name, left)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if grown = grow(v.Field(i), name+"."+v.Type().Field(i).Name, left); grown != "" {
				return grown
			}
		}
	case reflect.Int, reflect.Int64:
		step := steps[v.Interface()]
		if step == 0 {
			return ""
		}
		if *left--; *left < 0 {
			v.SetInt(v.Int() + step)
			return name
		}
	case reflect.Uint8:
		if v.Interface() != events.RunAgain {
			return ""
		}
		if *left--; *left < 0 {
			v.SetUint(v.Uint() + 1)
			return name
		}
	case reflect.String, reflect.Map, reflect.Slice:
		if v.Len() == 0 { // in this form
			return ""
		}
		if *left--; *left < 0 {
			lengthen(v)
			return name
		}
		if v.Kind() == reflect.Slice {
			return grow(v.Index(0), name+"[0]", left)
		}
	}
	return ""
}

// lengthen adds a byte or an element.
func lengthen(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Map:
		v.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf(""))
	default: // in memory of its own: largest forms share payloads
		longer := reflect.MakeSlice(v.Type(), v.Len(), v.Len()+1)
		reflect.Copy(longer, v)
		v.Set(reflect.Append(longer, v.Index(0)))
	}
}
