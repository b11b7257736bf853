package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v4"

	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/suggest"
)

// settings fills flags that were not given from variables and from a YAML file, in this order.
type settings struct {
	file  string
	known map[string]*pflag.Flag // what may be set so, by name
	viper *viper.Viper
}

// All names of variables begin with variables.
const variables = "TASKLEDGER"

func newSettings() *settings {
	v := viper.New()
	v.SetEnvPrefix(variables)
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	return &settings{known: map[string]*pflag.Flag{}, viper: v}
}

// take lets every flag of the set be given as a setting.
func (s *settings) take(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) { s.known[f.Name] = f })
}

// apply sets the flags of a command that the command line left alone. A flag of another command that happens to have
// the same name is no setting. An empty variable is refused as an empty flag is: viper takes it for none.
func (s *settings) apply(flags *pflag.FlagSet) (err error) {
	if err := s.read(); err != nil {
		return err
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if err != nil || f.Changed || s.known[f.Name] != f {
			return
		}
		variable := variableOf(f.Name)
		if value, is := os.LookupEnv(variable); is && value == "" {
			err = fmt.Errorf("%s is empty: unset it for the default", variable)
			return
		}
		if !s.viper.IsSet(f.Name) {
			return
		}
		if bad := flags.Set(f.Name, text(s.viper.Get(f.Name))); bad != nil {
			err = fmt.Errorf("%s: %w", s.source(f.Name), bad)
		}
	})
	return err
}

// injected matches the variables that Kubernetes sets for a service of the name taskledger.
var injected = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)?$`)

// named returns the variables that a node reads.
func (s *settings) named() []string {
	all := []string{"TASKLEDGER_ETCD_PASSWORD", "TASKLEDGER_NATS_PASSWORD"}
	for name := range s.known {
		all = append(all, variableOf(name))
	}
	return all
}

// strange returns the variables of the environment that are named like settings and are none.
func (s *settings) strange() (all []string) {
	known := s.named()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, variables+"_") || slices.Contains(known, name) || injected.MatchString(name) {
			continue
		}
		if meant := suggest.Near(name, known); len(meant) > 0 {
			name += ": is " + suggest.Or(meant) + " meant?"
		}
		all = append(all, name)
	}
	return all
}

// variableOf returns the name of the variable of a setting.
func variableOf(name string) string {
	return variables + "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// source names where a setting comes from: a variable, or a line of the file.
func (s *settings) source(name string) string {
	if variable := variableOf(name); os.Getenv(variable) != "" {
		return variable
	}
	return s.viper.ConfigFileUsed() + ": " + name
}

func (s *settings) read() error {
	file := s.file
	if file == "" {
		file = s.viper.GetString("config")
	}
	if file == "" {
		return nil
	}
	s.viper.SetConfigFile(file)
	s.viper.SetConfigType("yaml")
	text, err := os.ReadFile(file) // once: it may be a pipe
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	if err := s.viper.ReadConfig(bytes.NewReader(text)); err != nil {
		return fmt.Errorf("read settings of %s: %w", file, err)
	}
	return s.check(file, text)
}

// check refuses what viper passes over in a file that it has read: a second document, names that no setting has, and
// values of another form than their setting.
func (s *settings) check(file string, text []byte) error {
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var all map[string]any
	if err := documents.Decode(&all); err != nil && !errors.Is(err, io.EOF) { // it may be empty
		return fmt.Errorf("%s: want a line such as slots: 8 for each setting: %w", file, err)
	}
	if documents.Decode(new(any)) == nil {
		return fmt.Errorf("%s: holds more than one YAML document, want one", file)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		f := s.known[strings.ToLower(key)] // viper knows no capitals
		if f == nil {
			names := slices.Sorted(maps.Keys(s.known))
			return fmt.Errorf("%s: no setting is named %s%s", file, output.Clean(key), suggest.FlagFor(key, names))
		}
		if problem := misformed(f, all[key]); problem != "" {
			return fmt.Errorf("%s: %s: %s", file, key, problem)
		}
	}
	return nil
}

// misformed says what is wrong with the form of a value for a flag; "" = nothing.
func misformed(f *pflag.Flag, value any) string {
	if value == nil {
		return "no value: leave the line out for the default"
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Slice:
		if f.Value.Type() != "stringSlice" {
			return "a list, want one value"
		}
		for i := range v.Len() {
			switch v.Index(i).Elem().Kind() {
			case reflect.Invalid, reflect.Slice, reflect.Map:
				return fmt.Sprintf("element %d is no text, want a list of texts", i+1)
			}
		}
	case reflect.Map:
		if f.Value.Type() != "stringToInt" {
			return "names with values, want one value"
		}
	}
	return ""
}

// text writes a value as it would be given on the command line.
func text(value any) string {
	switch v := value.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = fmt.Sprint(v[i])
		}
		return strings.Join(parts, ",")
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%s=%v", key, v[key]))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(value)
}
