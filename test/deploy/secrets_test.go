package deploy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// made is the output of secrets.sh.
type made struct {
	hosts   map[string][]string // role -> names in its certificate
	secrets []string            // NAMESPACE/NAME
}

// runSecrets runs secrets.sh with programs in place of taxon and kubectl that only record their
// calls.
func runSecrets(dir string) (m made, err error) {
	temp, err := os.MkdirTemp("", "deploycheck")
	if err != nil {
		return made{}, err
	}
	defer os.RemoveAll(temp)
	for _, name := range []string{"taxon", "kubectl"} {
		if err := os.WriteFile(filepath.Join(temp, name), []byte("#!/bin/sh\necho "+name+" \"$*\" >>\"$CALLS\"\n"),
			0o700); err != nil {
			return made{}, err
		}
	}
	calls := filepath.Join(temp, "calls")
	script := exec.Command("sh", filepath.Join(dir, "secrets.sh"), filepath.Join(temp, "certs"), "taxon", "team")
	script.Env = append(os.Environ(), "PATH="+temp+":"+os.Getenv("PATH"), "CALLS="+calls)
	if out, err := script.CombinedOutput(); err != nil {
		return made{}, fmt.Errorf("secrets.sh: %w: %s", err, out)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		return made{}, err
	}
	m.hosts = map[string][]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		after := func(word string) string {
			if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
				return words[i+1]
			}
			return ""
		}
		switch {
		case words[0] == "taxon" && after("--host") != "":
			m.hosts[after("--role")] = strings.Split(after("--host"), ",")
		case after("create") == "secret":
			m.secrets = append(m.secrets, after("--namespace")+"/"+after("generic"))
		}
	}
	return m, nil
}

// checkNames checks that the addresses in arguments are reachable, also from other namespaces, by a
// name in the certificate of the server, and that the secrets exist.
func (m made) checkNames(w workload, say func(string, ...any)) {
	for _, v := range w.pod.Spec.Volumes {
		if v.Secret != nil && !slices.Contains(m.secrets, w.object.namespace+"/"+v.Secret.SecretName) {
			say("secrets.sh makes no secret %s", v.Secret.SecretName)
		}
	}
	for _, c := range w.pod.Spec.Containers {
		for flag, role := range map[string]string{"advertise": "store", "coordinator": "coordinator"} {
			addr, ok := flagValue(c.Args, flag)
			if !ok {
				continue
			}
			addr = expand(addr, w)
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				say("--%s=%s is not HOST:PORT", flag, addr)
				continue
			}
			if flag == "advertise" && !strings.HasSuffix(host, "."+w.object.namespace+".svc") {
				say("--%s=%s can't be resolved in other namespaces: it must end in .%s.svc", flag, addr, w.object.namespace)
			}
			if !slices.ContainsFunc(m.hosts[role], func(name string) bool { return covers(name, host) }) {
				say("--%s=%s: secrets.sh makes the certificate of the %s for %v", flag, addr, role, m.hosts[role])
			}
		}
	}
}

// expand replaces the variables that name a pod, as the kubelet does.
func expand(text string, w workload) string {
	for _, c := range w.pod.Spec.Containers {
		for _, e := range c.Env {
			if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
				continue
			}
			value := map[string]string{"metadata.name": w.object.name + "-0",
				"metadata.namespace": w.object.namespace}[e.ValueFrom.FieldRef.FieldPath]
			text = strings.ReplaceAll(text, "$("+e.Name+")", value)
		}
	}
	return text
}

// covers reports whether a certificate's name, which may begin with *, matches a host.
func covers(name, host string) bool {
	if rest, ok := strings.CutPrefix(name, "*"); ok {
		_, parent, _ := strings.Cut(host, ".")
		return "."+parent == rest
	}
	return name == host
}
