package deploy

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	coordinatorPort = 7070
	storePort       = 7071
	dnsPort         = 53
)

// checkTraffic checks that the network policies allow every connection that the processes and
// clients need, including DNS at any address.
func checkTraffic(objects []object, workloads []workload) []string {
	var policies []*networkingv1.NetworkPolicy
	for _, o := range objects {
		if p, ok := o.value.(*networkingv1.NetworkPolicy); ok {
			policies = append(policies, p)
		}
	}
	pods := map[string]corev1.PodTemplateSpec{}
	for _, w := range workloads {
		pods[w.object.name] = w.pod
	}
	var problems []string
	for _, from := range slices.Sorted(maps.Keys(pods)) {
		if !mayCall(policies, pods[from], corev1.PodTemplateSpec{}, dnsPort) {
			problems = append(problems, fmt.Sprintf("kubernetes: %s may not ask DNS at any address: a node's own "+
				"cache is in no namespace", from))
		}
		for to, port := range map[string]int32{"taxon-coordinator": coordinatorPort, "taxon-store": storePort} {
			if from != to && !mayCall(policies, pods[from], pods[to], port) {
				problems = append(problems, fmt.Sprintf("kubernetes: the network policies keep %s from port %d of %s", from, port,
					to))
			}
		}
	}
	return problems
}

// mayCall reports whether the policies of one namespace allow a pod in it to call a port of another
// pod. A pod without containers stands for any address.
func mayCall(policies []*networkingv1.NetworkPolicy, from, to corev1.PodTemplateSpec, port int32) bool {
	anywhere := len(to.Spec.Containers) == 0
	out, in := false, anywhere
	for _, p := range policies {
		if selects(p.Spec.PodSelector.MatchLabels, from.Labels) {
			for _, rule := range p.Spec.Egress {
				out = out || named(rule.Ports, to, port) && reaches(rule.To, to.Labels, anywhere)
			}
		}
		if !anywhere && selects(p.Spec.PodSelector.MatchLabels, to.Labels) {
			for _, rule := range p.Spec.Ingress {
				in = in || named(rule.Ports, to, port) && reaches(rule.From, from.Labels, false)
			}
		}
	}
	return out && in
}

// named reports whether a rule applies to a port of a pod. An empty list applies to all ports.
func named(ports []networkingv1.NetworkPolicyPort, to corev1.PodTemplateSpec, port int32) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return p.Port == nil || p.Port.IntVal == port || slices.ContainsFunc(to.Spec.Containers,
			func(c corev1.Container) bool {
				return slices.ContainsFunc(c.Ports, func(own corev1.ContainerPort) bool {
					return own.Name == p.Port.StrVal &&
						own.ContainerPort == port
				})
			})
	})
}

// reaches reports whether a rule's peers include a pod of the same namespace. An empty list
// includes every pod.
func reaches(peers []networkingv1.NetworkPolicyPeer, labels map[string]string, anywhere bool) bool {
	return len(peers) == 0 || !anywhere && slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock == nil && p.NamespaceSelector == nil && selects(labelsOf(p.PodSelector), labels)
	})
}

func labelsOf(s *metav1.LabelSelector) map[string]string {
	if s == nil {
		return nil
	}
	return s.MatchLabels
}
