package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// kinds are the types of the manifests.
var kinds = map[string]func() any{
	"Namespace":           func() any { return new(corev1.Namespace) },
	"ConfigMap":           func() any { return new(corev1.ConfigMap) },
	"Service":             func() any { return new(corev1.Service) },
	"StatefulSet":         func() any { return new(appsv1.StatefulSet) },
	"Deployment":          func() any { return new(appsv1.Deployment) },
	"PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
}

// manifests decodes the manifests strictly into the types of Kubernetes.
func manifests() (all []any, err error) {
	text, err := os.ReadFile(filepath.Join(deploy, "kubernetes", "taskledger.yaml"))
	if err != nil {
		return nil, err
	}
	for i, d := range strings.Split(string(text), "\n---\n") {
		var of struct{ Kind string }
		if err := yaml.Unmarshal([]byte(d), &of); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		typed, known := kinds[of.Kind]
		if !known {
			return nil, fmt.Errorf("document %d is of kind %q, which check does not know", i+1, of.Kind)
		}
		is := typed()
		if err := yaml.UnmarshalStrict([]byte(d), is); err != nil {
			return nil, fmt.Errorf("document %d, %s: %w", i+1, of.Kind, err)
		}
		all = append(all, is)
	}
	if len(all) < len(kinds) {
		return nil, fmt.Errorf("there are %d documents, want one of each of %d kinds", len(all), len(kinds))
	}
	return all, nil
}

// pods are the processes of the StatefulSet and of the Deployment.
func (w *world) pods() (all []*process, err error) {
	read, err := manifests()
	if err != nil {
		return nil, err
	}
	configured := map[string]map[string]string{} // the data of each ConfigMap
	for _, m := range read {
		if c, is := m.(*corev1.ConfigMap); is {
			configured[c.Name] = c.Data
		}
	}
	for _, m := range read {
		var name string
		var replicas int32
		var spec corev1.PodSpec
		switch m := m.(type) {
		case *appsv1.StatefulSet:
			name, replicas, spec = m.Name, *m.Spec.Replicas, m.Spec.Template.Spec
			for _, claim := range m.Spec.VolumeClaimTemplates { // a new one is an empty folder
				spec.Volumes = append(spec.Volumes, corev1.Volume{
					Name:         claim.Name,
					VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
				})
			}
		case *appsv1.Deployment:
			name, replicas, spec = m.Name, *m.Spec.Replicas, m.Spec.Template.Spec
		default:
			continue
		}
		for i := range int(replicas) {
			p, err := w.pod(name+"-"+strconv.Itoa(i), &spec, configured)
			if err != nil {
				return nil, fmt.Errorf("pod %s-%d: %w", name, i, err)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// pod is the process of the one container of a pod.
func (w *world) pod(name string, spec *corev1.PodSpec, configured map[string]map[string]string) (*process, error) {
	c := spec.Containers[0]
	p := &process{
		name:  name,
		args:  slices.Concat(w.image.entrypoint, c.Args),
		env:   slices.Clone(w.image.env),
		user:  int(*spec.SecurityContext.RunAsUser),
		group: int(*spec.SecurityContext.RunAsGroup),
		dir:   w.image.dir,
		stop:  time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second,
		first: true,
		root:  filepath.Join(w.dir, "kubernetes", name),
	}
	// The root is read-only: nothing below it belongs to the user of the process.
	if !*c.SecurityContext.ReadOnlyRootFilesystem {
		return nil, fmt.Errorf("its root can be written")
	}
	if err := link(filepath.Join(w.bin, "taskledger"), filepath.Join(p.root, w.image.program)); err != nil {
		return nil, err
	}
	set := func(variable, value string) error {
		text, err := w.addresses.replaced(name, value)
		p.env = append(p.env, variable+"="+text)
		return err
	}
	for _, from := range c.EnvFrom {
		for variable, value := range configured[from.ConfigMapRef.Name] {
			if err := set(variable, value); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range c.Env {
		if v.ValueFrom != nil {
			if v.ValueFrom.FieldRef.FieldPath != "metadata.name" {
				return nil, fmt.Errorf("%s is of a field that check does not know", v.Name)
			}
			v.Value = name
		}
		if err := set(v.Name, v.Value); err != nil {
			return nil, err
		}
	}
	return p, errors.Join(w.mount(p, spec, &c), w.probe(p, &c))
}

// mount lays the volumes of a pod: a Secret has the files of a folder of that name.
func (w *world) mount(p *process, spec *corev1.PodSpec, c *corev1.Container) error {
	volumes := map[string]corev1.VolumeSource{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = v.VolumeSource
	}
	for _, m := range c.VolumeMounts {
		target := filepath.Join(p.root, m.MountPath)
		switch v := volumes[m.Name]; {
		case v.EmptyDir != nil:
			if err := own(target, 0, p.group, os.ModeSetgid|0o770); err != nil { // as fsGroup has it
				return err
			}
		case v.Secret != nil:
			files, err := os.ReadDir(filepath.Join(w.dir, "secrets", v.Secret.SecretName))
			if err != nil {
				return err
			}
			for _, f := range files {
				at := filepath.Join(target, f.Name())
				err := errors.Join(
					copyTree(filepath.Join(w.dir, "secrets", v.Secret.SecretName, f.Name()), at, nil),
					os.Chown(at, 0, p.group),
					os.Chmod(at, os.FileMode(*v.Secret.DefaultMode)),
				)
				if err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("volume %q is none that check knows", m.Name)
		}
	}
	return nil
}

// probe takes the probes of a container, in the order in which a kubelet asks them.
func (w *world) probe(p *process, c *corev1.Container) error {
	ports := map[string]int32{}
	for _, is := range c.Ports {
		ports[is.Name] = is.ContainerPort
	}
	if c.ReadinessProbe == nil || c.LivenessProbe == nil {
		return fmt.Errorf("it has no readinessProbe, or no livenessProbe")
	}
	for _, is := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if is == nil {
			continue
		}
		asks, err := timesOf(is, is != c.ReadinessProbe)
		if err != nil {
			return err
		}
		if is.Exec != nil {
			asks.command = is.Exec.Command
		} else {
			number := is.HTTPGet.Port.IntVal
			if is.HTTPGet.Port.Type == intstr.String {
				number = ports[is.HTTPGet.Port.StrVal]
			}
			at, err := w.addresses.at(p.name, strconv.Itoa(int(number)))
			if err != nil {
				return err
			}
			asks.url = strings.ToLower(string(is.HTTPGet.Scheme)) + "://" + at + is.HTTPGet.Path
		}
		p.probes = append(p.probes, asks)
	}
	return nil
}

// timesOf makes a probe with the times of a kubelet's; one which ends the container has to say how often it may fail.
func timesOf(is *corev1.Probe, ends bool) (probe, error) {
	if is.TimeoutSeconds == 0 || is.PeriodSeconds == 0 || ends && is.FailureThreshold == 0 {
		return probe{}, errors.New("a probe wants timeoutSeconds, periodSeconds and, to end a container, failureThreshold")
	}
	if is.InitialDelaySeconds != 0 || is.SuccessThreshold != 0 || is.TerminationGracePeriodSeconds != nil ||
		!ends && is.FailureThreshold != 0 {
		return probe{}, errors.New("a probe has a time, or a threshold, that nothing here uses")
	}
	asks := probe{timeout: time.Duration(is.TimeoutSeconds) * time.Second, within: timeout}
	if ends {
		asks.within = time.Duration(is.PeriodSeconds*is.FailureThreshold) * time.Second
	}
	return asks, nil
}
