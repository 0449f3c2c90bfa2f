package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// object is one decoded manifest.
type object struct {
	kind, name, namespace string
	value                 any
}

func (o object) String() string { return o.kind + " " + o.name }

// types lists the kinds that the manifests may use, by apiVersion and kind.
var types = map[string]func() any{
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoringv1.ServiceMonitor) },
	"monitoring.coreos.com/v1 PodMonitor":     func() any { return new(monitoringv1.PodMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return new(monitoringv1.PrometheusRule) },
	"v1 Namespace":                           func() any { return new(corev1.Namespace) },
	"v1 ServiceAccount":                      func() any { return new(corev1.ServiceAccount) },
	"v1 Service":                             func() any { return new(corev1.Service) },
	"v1 Secret":                              func() any { return new(corev1.Secret) },
	"v1 ConfigMap":                           func() any { return new(corev1.ConfigMap) },
	"v1 Pod":                                 func() any { return new(corev1.Pod) },
	"v1 PersistentVolumeClaim":               func() any { return new(corev1.PersistentVolumeClaim) },
	"batch/v1 Job":                           func() any { return new(batchv1.Job) },
	"apps/v1 StatefulSet":                    func() any { return new(appsv1.StatefulSet) },
	"apps/v1 Deployment":                     func() any { return new(appsv1.Deployment) },
	"autoscaling/v2 HorizontalPodAutoscaler": func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"policy/v1 PodDisruptionBudget":          func() any { return new(policyv1.PodDisruptionBudget) },
	"networking.k8s.io/v1 NetworkPolicy":     func() any { return new(networkingv1.NetworkPolicy) },
}

// build runs the kustomization and decodes its output.
func build(dir string) ([]object, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	var out []object
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", dir, r.CurId(), err)
		}
		o, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", dir, r.GetKind(), r.GetName(), err)
		}
		out = append(out, o)
	}
	return out, nil
}

// decode reads one manifest strictly.
func decode(text []byte) (object, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return object{}, err
	}
	make, ok := types[head.APIVersion+" "+head.Kind]
	if !ok {
		return object{}, fmt.Errorf("%s %s is not a kind that is known here", head.APIVersion, head.Kind)
	}
	value := make()
	if err := yaml.UnmarshalStrict(text, value); err != nil {
		return object{}, err
	}
	return object{kind: head.Kind, name: head.Metadata.Name, namespace: head.Metadata.Namespace, value: value}, nil
}

// notListed returns the manifests that the kustomization lacks.
func notListed(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var k struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, f := range files {
		if name := filepath.Base(f); name != "kustomization.yaml" && !slices.Contains(k.Resources, name) {
			problems = append(problems, fmt.Sprintf("%s: not in kustomization.yaml", f))
		}
	}
	return problems, nil
}

// selects reports whether a selector's labels are all among those of a pod.
func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// flagValue finds --name=VALUE among a container's arguments.
func flagValue(args []string, name string) (string, bool) {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return v, true
		}
	}
	return "", false
}
