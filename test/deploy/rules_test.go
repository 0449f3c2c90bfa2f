package deploy

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workload holds the parts of a StatefulSet or Deployment that the rules use.
type workload struct {
	object   object
	selector map[string]string
	service  string // service of a StatefulSet
	claims   []string
	pod      corev1.PodTemplateSpec
}

// checkObjects applies all rules.
func checkObjects(objects []object, secrets made) []string {
	var problems []string
	say := func(o object, format string, args ...any) {
		problems = append(problems, "kubernetes: "+o.String()+": "+fmt.Sprintf(format, args...))
	}
	seen := map[string]bool{}
	var workloads []workload
	services := map[string]*corev1.Service{}
	accounts := map[string]bool{}
	for _, o := range objects {
		if seen[o.String()] {
			say(o, "is there twice")
		}
		seen[o.String()] = true
		if o.kind != "Namespace" && o.namespace == "" {
			say(o, "has no namespace")
		}
		switch v := o.value.(type) {
		case *corev1.Service:
			services[o.name] = v
		case *corev1.ServiceAccount:
			accounts[o.name] = true
		case *appsv1.StatefulSet:
			w := workload{object: o, selector: v.Spec.Selector.MatchLabels, service: v.Spec.ServiceName, pod: v.Spec.Template}
			for _, c := range v.Spec.VolumeClaimTemplates {
				w.claims = append(w.claims, c.Name)
			}
			workloads = append(workloads, w)
		case *appsv1.Deployment:
			workloads = append(workloads, workload{object: o, selector: v.Spec.Selector.MatchLabels, pod: v.Spec.Template})
		}
	}
	clients := slices.Clone(workloads)
	for _, o := range objects {
		if pod, ok := podOf(o); ok {
			clients = append(clients, workload{object: o, pod: pod})
		}
	}
	for _, w := range clients {
		say := func(format string, args ...any) { say(w.object, format, args...) }
		checkRestricted(w.pod.Spec, say)
		secrets.checkNames(w, say)
	}
	problems = append(problems, checkTraffic(objects, clients)...)
	for _, w := range workloads {
		say := func(format string, args ...any) { say(w.object, format, args...) }
		checkWorkload(w, services, accounts, say)
	}
	for _, o := range objects {
		say := func(format string, args ...any) { say(o, format, args...) }
		checkReferences(o, clients, seen, say)
	}
	return problems
}

// checkWorkload checks selectors, names, and the requirements beyond the restricted policy.
func checkWorkload(w workload, services map[string]*corev1.Service, accounts map[string]bool,
	say func(string, ...any)) {
	if len(w.selector) == 0 || !selects(w.selector, w.pod.Labels) {
		say("its selector does not select its own pods")
	}
	if w.object.kind == "StatefulSet" && services[w.service] == nil {
		say("serviceName %s: no such service", w.service)
	}
	s := w.pod.Spec
	if !accounts[s.ServiceAccountName] {
		say("serviceAccountName %q: no such account", s.ServiceAccountName)
	}
	if s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken {
		say("mounts a token for the API server, which it does not talk to")
	}
	volumes := slices.Clone(w.claims)
	for _, v := range s.Volumes {
		volumes = append(volumes, v.Name)
		if v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o440) {
			say("volume %s: defaultMode must be 0440, or the process refuses its key", v.Name)
		}
	}
	for _, c := range s.Containers {
		checkContainer(c, volumes, say)
	}
}

func checkContainer(c corev1.Container, volumes []string, say func(string, ...any)) {
	if p := c.SecurityContext; p == nil || p.ReadOnlyRootFilesystem == nil || !*p.ReadOnlyRootFilesystem {
		say("container %s: must do without a writable root", c.Name)
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().IsZero() ||
		c.Resources.Requests.Cpu().IsZero() {
		say("container %s: needs requests of CPU and memory and a limit of memory", c.Name)
	}
	for _, m := range c.VolumeMounts {
		if !slices.Contains(volumes, m.Name) {
			say("container %s: mounts %s, which is no volume of the pod", c.Name, m.Name)
		}
	}
	ports := map[string]int32{}
	for _, port := range c.Ports {
		ports[port.Name] = port.ContainerPort
	}
	for what, probe := range map[string]*corev1.Probe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS ||
			ports[probe.HTTPGet.Port.StrVal] == 0 {
			say("container %s: the %s probe must ask a named port by HTTPS", c.Name, what)
		}
	}
	// ports must be those on which the arguments listen, and files must lie in mounted folders
	for flag, port := range map[string]string{"listen": "grpc", "metrics": "metrics"} {
		addr, ok := flagValue(c.Args, flag)
		if !ok {
			if ports[port] != 0 {
				say("container %s: port %s without --%s", c.Name, port, flag)
			}
			continue
		}
		if _, number, err := net.SplitHostPort(addr); err != nil || number != strconv.Itoa(int(ports[port])) {
			say("container %s: --%s=%s is not its port %s (%d)", c.Name, flag, addr, port, ports[port])
		}
	}
	for _, flag := range []string{"tls-ca", "tls-cert", "tls-key", "token-file", "dir"} {
		path, ok := flagValue(c.Args, flag)
		if !ok || !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")
		}) {
			say("container %s: --%s=%s is in no mounted folder", c.Name, flag, path)
		}
	}
	known := map[string]bool{}
	for _, e := range c.Env {
		known[e.Name] = true
	}
	for _, a := range c.Args {
		if _, rest, ok := strings.Cut(a, "$("); ok {
			if name, _, _ := strings.Cut(rest, ")"); !known[name] {
				say("container %s: %s: no variable %s", c.Name, a, name)
			}
		}
	}
}

// checkReferences checks the references of objects to each other.
func checkReferences(o object, workloads []workload, seen map[string]bool, say func(string, ...any)) {
	selected := func(selector map[string]string) (out []workload) {
		for _, w := range workloads {
			if selects(selector, w.pod.Labels) {
				out = append(out, w)
			}
		}
		return out
	}

	// named reports whether some container of the workloads has the port.
	named := func(ws []workload, port intstr.IntOrString) bool {
		for _, w := range ws {
			for _, c := range w.pod.Spec.Containers {
				for _, p := range c.Ports {
					if p.Name == port.StrVal || p.ContainerPort == port.IntVal {
						return true
					}
				}
			}
		}
		return false
	}
	switch v := o.value.(type) {
	case *corev1.Service:
		ws := selected(v.Spec.Selector)
		if len(ws) != 1 {
			say("selects %d workloads", len(ws))
		}
		for _, p := range v.Spec.Ports {
			if !named(ws, p.TargetPort) {
				say("port %s: its pods have no port %s", p.Name, p.TargetPort.String())
			}
		}
	case *policyv1.PodDisruptionBudget:
		if ws := selected(v.Spec.Selector.MatchLabels); len(ws) != 1 {
			say("selects %d workloads", len(ws))
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		t := v.Spec.ScaleTargetRef
		if !seen[t.Kind+" "+t.Name] {
			say("scales %s %s, which is not there", t.Kind, t.Name)
		}
		for _, w := range workloads {
			if d, ok := w.object.value.(*appsv1.Deployment); ok && d.Name == t.Name && d.Spec.Replicas != nil {
				say("%s says replicas too: each apply would undo the scaling", w.object)
			}
		}
	case *networkingv1.NetworkPolicy:
		ws := selected(v.Spec.PodSelector.MatchLabels)
		if len(ws) == 0 {
			say("selects no pods")
		}
		for _, in := range v.Spec.Ingress {
			for _, p := range in.Ports {
				if p.Port == nil || !named(ws, *p.Port) {
					say("lets in to a port that its pods do not have")
				}
			}
		}
	}
}
