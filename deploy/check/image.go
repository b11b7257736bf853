package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// image holds the instructions of the Dockerfile that concern its processes.
type image struct {
	entrypoint []string
	command    []string
	env        []string // NAME=value
	user       int      // and their group
	dir        string   // their working directory
	folders    []string // those that the user owns
	program    string   // path of the program of `make image`
	health     probe
}

// readImage reads the instructions that the Dockerfile has; one that it does not know is an error.
func readImage() (*image, error) {
	text, err := os.ReadFile(filepath.Join(deploy, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	i := &image{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if err := i.instruct(name, strings.Fields(rest), rest); err != nil {
			return nil, fmt.Errorf("Dockerfile, %s: %w", name, err)
		}
	}
	return i, nil
}

func (i *image) instruct(name string, words []string, rest string) (err error) {
	switch name {
	case "FROM", "EXPOSE", "STOPSIGNAL", "VOLUME":
		want := map[string]string{"FROM": "scratch", "EXPOSE": "7400 9464", "STOPSIGNAL": "SIGTERM", "VOLUME": "/data"}[name]
		if rest != want {
			return fmt.Errorf("%s, want %s, as the processes are started", rest, want)
		}
	case "COPY":
		if strings.HasPrefix(words[0], "--chown=") {
			i.folders = append(i.folders, words[len(words)-1])
		}
		if words[0] == "taskledger" {
			i.program = words[1]
		}
	case "ENV":
		i.env = append(i.env, words...)
	case "WORKDIR":
		i.dir = rest
	case "USER":
		user, _, _ := strings.Cut(rest, ":")
		i.user, err = strconv.Atoi(user)
	case "ENTRYPOINT":
		err = json.Unmarshal([]byte(rest), &i.entrypoint)
	case "CMD":
		err = json.Unmarshal([]byte(rest), &i.command)
	case "HEALTHCHECK":
		i.health, err = healthOf(rest)
	default:
		err = fmt.Errorf("no such instruction is known here")
	}
	return err
}

// defaultRetries is how often a check of health may fail where it does not say so.
const defaultRetries = 3

// healthOf reads what follows HEALTHCHECK.
func healthOf(rest string) (p probe, err error) {
	options, command, _ := strings.Cut(rest, " CMD ")
	flags := flag.NewFlagSet("HEALTHCHECK", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	interval, start := flags.Duration("interval", 0, ""), flags.Duration("start-period", 0, "")
	retries := flags.Int("retries", defaultRetries, "")
	flags.DurationVar(&p.timeout, "timeout", 0, "")
	if err := flags.Parse(strings.Fields(options)); err != nil {
		return p, err
	}
	if *interval == 0 || *start == 0 || p.timeout == 0 {
		return p, errors.New("want --interval, --timeout and --start-period")
	}
	p.within = *start + time.Duration(*retries)**interval
	return p, json.Unmarshal([]byte(command), &p.command)
}

// lay makes what a process of the image finds.
func (i *image) lay(root, built string) error {
	for _, folder := range i.folders {
		if err := own(filepath.Join(root, folder), i.user, i.user, 0o700); err != nil {
			return err
		}
	}
	return link(built, filepath.Join(root, i.program))
}

// buildImage builds the Dockerfile with a file in place of the program.
func buildImage(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("buildah"); err != nil {
		fmt.Println("image: there is no buildah here, so none was built")
		return nil
	}
	store := []string{
		"--storage-driver", "vfs", "--root", filepath.Join(dir, "storage"), "--runroot", filepath.Join(dir, "run"),
	}
	begins := append(slices.Clone(store), "from", "scratch")
	if text, err := exec.CommandContext(ctx, "buildah", begins...).CombinedOutput(); err != nil {
		fmt.Printf("image: buildah can begin no image on this machine, so none was built: %v\n%s", err, text)
		return nil
	}
	place := filepath.Join(dir, "image")
	for _, d := range []string{place, filepath.Join(place, "tmp"), filepath.Join(place, "data")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	in, err := os.Open(filepath.Join(deploy, "Dockerfile"))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(place, "Dockerfile"))
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	for _, name := range []string{"taskledger", "ca-certificates.crt", "passwd"} {
		if err := os.WriteFile(filepath.Join(place, name), nil, 0o755); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	const name = "taskledger:check"
	// The other format knows no HEALTHCHECK.
	builds := append(slices.Clone(store), "build", "--format", "docker", "--isolation", "chroot", "-t", name, place)
	if err := tool(ctx, "buildah", builds...); err != nil {
		return err
	}
	const test = "{{.Docker.Config.Healthcheck.Test}}"
	asks := append(slices.Clone(store), "inspect", "--type", "image", "--format", test, name)
	text, err := exec.CommandContext(ctx, "buildah", asks...).CombinedOutput()
	if err != nil || strings.TrimSpace(string(text)) != "[CMD /taskledger health]" {
		return errors.Join(fmt.Errorf("the image asks for its health by %s", text), err)
	}
	return nil
}
