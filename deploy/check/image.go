package main

import (
	"context"
	"crypto/sha256"
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

// buildImage lays out what `make image` builds from, builds it where buildah can, and holds the program in the image to
// the checksum of the release.
func buildImage(ctx context.Context, dir string) error {
	project, place := filepath.Join(deploy, ".."), filepath.Join(dir, "image")
	if err := tool(ctx, "make", "-s", "-C", project, "image-files", "DIR="+place); err != nil {
		return err
	}
	if err := isReleased(filepath.Join(place, "taskledger"), filepath.Join(project, "dist", "SHA256SUMS")); err != nil {
		return err
	}
	if _, err := exec.LookPath("buildah"); err != nil {
		fmt.Println("image: there is no buildah here, so none was built")
		return nil
	}
	b := buildah{
		"--storage-driver", "vfs", "--root", filepath.Join(dir, "storage"), "--runroot", filepath.Join(dir, "run"),
	}
	if text, err := b.run(ctx, "from", "scratch"); err != nil {
		fmt.Printf("image: buildah can begin no image on this machine, so none was built: %v\n%s\n", err, text)
		return nil
	}
	const name = "taskledger:check"
	// The other format knows no HEALTHCHECK.
	if text, err := b.run(ctx, "build", "--format", "docker", "--isolation", "chroot", "-t", name, place); err != nil {
		return fmt.Errorf("build the image: %w\n%s", err, text)
	}
	const test = "{{.Docker.Config.Healthcheck.Test}}"
	asks, err := b.run(ctx, "inspect", "--type", "image", "--format", test, name)
	if err != nil || asks != "[CMD /taskledger health]" {
		return errors.Join(fmt.Errorf("the image asks for its health by %s", asks), err)
	}
	container, err := b.run(ctx, "from", name)
	if err != nil {
		return fmt.Errorf("begin a container: %w\n%s", err, container)
	}
	root, err := b.run(ctx, "mount", container)
	if err != nil {
		return fmt.Errorf("mount the image: %w\n%s", err, root)
	}
	return isReleased(filepath.Join(root, "taskledger"), filepath.Join(project, "dist", "SHA256SUMS"))
}

// buildah holds the options that say where its images are.
type buildah []string

// run returns what buildah prints, without the space around it.
func (b buildah) run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "buildah", append(slices.Clone(b), args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// isReleased reports an error where a program is none of those whose checksums are in a file.
func isReleased(program, sums string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	released, err := os.ReadFile(sums)
	if err != nil {
		return err
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(content)); !strings.Contains(string(released), sum+"  taskledger-") {
		return fmt.Errorf("%s has the checksum %s, the release has\n%s", program, sum, released)
	}
	return nil
}
