package api

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"taskledger/api/fieldtext"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/view"
	"taskledger/events"
	"taskledger/ledger/exportform"
	"taskledger/schedule"
	"taskledger/task"
)

const schemaPrefix = "#/components/schemas/"

// textTypes are JSON strings, whatever their Go types are.
var textTypes = []any{
	events.TaskID(""),
	events.Position{},
	events.Hash{},
	events.Kind(0),
	task.Status(0),
	task.Substatus(0),
	problem.Type(""),
}

// closed has the values of the types that have few. What an answer has of a set that later releases add to, such as
// the kinds of events, stands in restrict: a client must pass over values that it does not know.
var closed = map[reflect.Type][]any{
	reflect.TypeFor[task.Status]():    texts(statusNames()),
	reflect.TypeFor[task.Substatus](): texts(task.Substatuses()),
	reflect.TypeFor[problem.Type]():   texts(problemNames()),
	reflect.TypeFor[task.Reason](): {
		task.WhyScheduled, task.WhyWaiting, task.WhyNoNode, task.WhyNoOwner, task.WhySuspended, task.WhyPaused,
		task.WhySettings, task.WhyQuarantined, task.WhyStoreFull, task.WhyNoZone, task.WhyByHand, task.WhyWorkers,
		task.WhyRunning, task.WhyFinished,
	},
	reflect.TypeFor[schedule.Overlap](): {schedule.Forbid, schedule.Allow, schedule.Replace},
	reflect.TypeFor[schedule.Misfire](): {schedule.Once, schedule.Skip, schedule.All},
}

// closedFields has the values of fields whose type is a text or a flag, and of those of other fronts. A front can name
// them in a tag of its field, too.
var closedFields = map[string][]any{
	"Change.operation":         texts(append(slices.Sorted(maps.Keys(verbs)), operations.Delete)),
	"ChangeMatching.operation": texts(slices.Sorted(maps.Keys(operations.OfMany))),
	"Event.record":             texts(events.Records()[1:]),
	"Header.format":            {exportform.Format},
	"LogLine.level":            {"info", "error"},
	"SyncCancelled.status":     {"ok"},
	"SyncLine.level":           {"info", "error"},
	"SyncTask.status":          {"SCHEDULED", "RUNNING", "FAILED", "SUCCESS"},
	"WorkRerun.failed":         {true},
	"WorkReset.thresholds":     {true},
}

// mostOf bounds numbers of requests, from 0 on.
var mostOf = map[string]int64{
	"Submit.delay_ms":       events.MaxDelay.Milliseconds(),
	"Submit.max_attempts":   events.MaxPolicyCount,
	"Submit.priority":       events.MaxPriority,
	"Submit.retain_ms":      events.MaxDelay.Milliseconds(),
	"Submit.timeout_ms":     events.MaxDelay.Milliseconds(),
	"ScheduleForm.priority": events.MaxPriority,
	"ScheduleForm.keep":     events.MaxKeptRuns,
}

// texts returns values as JSON has them.
func texts[T any](values []T) (all []any) {
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// problemNames returns the types of problems as answers have them, in order.
func problemNames() (all []string) {
	for _, is := range problem.Types() {
		all = append(all, problem.Prefix+string(is))
	}
	slices.Sort(all)
	return all
}

// schemas makes the schemas of the document. Answers may grow, and requests may not have fields that are not known: a
// type that both have has two schemas.
type schemas struct {
	answers, requests huma.Registry
}

func newSchemas() *schemas {
	s := &schemas{answers: huma.NewMapRegistry(schemaPrefix, schemaName)}
	s.requests = huma.NewMapRegistry(schemaPrefix, func(t reflect.Type, hint string) string {
		name := schemaName(t, hint)
		if s.answers.Map()[name] != nil {
			name += inputSuffix
		}
		return name
	})
	for _, r := range []huma.Registry{s.answers, s.requests} {
		for _, text := range textTypes {
			r.RegisterTypeAlias(reflect.TypeOf(text), reflect.TypeFor[string]())
		}
		r.RegisterTypeAlias(reflect.TypeFor[events.Millis](), reflect.TypeFor[time.Time]())
		r.RegisterTypeAlias(reflect.TypeFor[schedule.Definition](), reflect.TypeFor[schedule.Form]())
		r.RegisterTypeAlias(reflect.TypeFor[exportform.Hashes](), reflect.TypeFor[[]byte]())
	}
	return s
}

// inputSuffix ends the name of a request whose type answers have, too.
const inputSuffix = "Input"

// all describes the schemas and returns those of answers, with those of requests among them.
func (s *schemas) all() huma.Registry {
	sentences := fieldtext.Read()
	for name, schema := range maps.Clone(s.answers.Map()) {
		schema.AdditionalProperties = nil
		describe(sentences, name, schema, s.answers)
	}
	for name, schema := range s.requests.Map() {
		describe(sentences, name, schema, s.requests)
		s.answers.Map()[name] = schema
	}
	return s.answers
}

// describe completes the schema of a struct: sentences, the values of closed sets, and which fields may be null.
func describe(sentences fieldtext.Texts, name string, schema *huma.Schema, of huma.Registry) {
	t := of.TypeFromRef(schemaPrefix + name)
	name = strings.TrimSuffix(name, inputSuffix)
	schema.Description = sentences[name]
	for _, f := range jsonFields(t) {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		is := schema.Properties[field]
		if is == nil { // huma passes over those of a struct whose own name is not exported
			is = of.Schema(f.Type, true, "")
			schema.Properties[field] = is
			if !strings.Contains(options, "omit") {
				schema.Required = append(schema.Required, field)
			}
		}
		at := name + "." + field
		restrict(is, at, f.Type)
		if !is.Nullable && f.Type.Kind() == reflect.Pointer && options == "" && len(is.OneOf) == 0 {
			is = orNull(is)
			schema.Properties[field] = is
		}
		is.Description, _ = sentences.Field(name, field)
	}
}

// jsonFields returns the fields that JSON has of a struct, those of its embedded structs among them.
func jsonFields(t reflect.Type) (all []reflect.StructField) {
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Anonymous && f.Tag.Get("json") == "":
			all = append(all, jsonFields(f.Type)...)
		case f.IsExported() && f.Tag.Get("json") != "-":
			all = append(all, f)
		}
	}
	return all
}

// restrict says which values a field has.
func restrict(is *huma.Schema, at string, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if values := closed[t]; values != nil {
		is.Enum = values
	}
	if values := closedFields[at]; values != nil {
		is.Enum = values
	}
	if t == reflect.TypeFor[events.Kind]() {
		is.Extensions = grows(texts(events.Kinds()))
	}
	if at == "StoreProblem.kind" {
		is.Extensions = grows([]any{"not-there", "held", "other-group"})
	}
	if most, bounded := mostOf[at]; bounded {
		is.Minimum, is.Maximum = bound(0), bound(most)
	}
	if t == reflect.TypeFor[events.Millis]() && slices.Contains(maybeEmpty, at) {
		is.Format = ""
	}
}

// maybeEmpty names the times that are "" where there is none.
var maybeEmpty = []string{"SyncTask.started_at", "SyncTask.finished_at"}

// grows lists the values that there are so far.
func grows(values []any) map[string]any { return map[string]any{"x-extensible-enum": values} }

func bound(n int64) *float64 {
	f := float64(n)
	return &f
}

func orNull(schema *huma.Schema) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{schema, {Type: "null"}}}
}

// schemaName returns the name of a type. It tells types of one name apart by their package.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[events.Error]():
		return "TaskError"
	case reflect.TypeFor[view.Error](): // many languages have an Error of their own
		return "OutcomeError"
	}
	switch of := path.Base(t.PkgPath()); {
	case of == "form": // a task store has one
		return "Store" + name
	case of == "sync", of == "taskjson":
		return "Sync" + name
	case of == "logs":
		return "Log" + name
	case of == "works", of == "progress" && name != "Work":
		return "Work" + name
	case of == "schedules", of == "schedule" && name != "Schedule":
		return "Schedule" + name
	}
	return name
}
