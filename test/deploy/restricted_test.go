package deploy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// checkRestricted checks a pod against the Pod Security Standard "restricted", which the namespace
// enforces: the API server refuses any other pod.
func checkRestricted(s corev1.PodSpec, say func(string, ...any)) {
	if s.HostNetwork || s.HostPID || s.HostIPC {
		say("restricted: shares the host's network or processes")
	}
	for _, v := range s.Volumes {
		if v.ConfigMap == nil && v.CSI == nil && v.DownwardAPI == nil && v.EmptyDir == nil && v.Ephemeral == nil &&
			v.PersistentVolumeClaim == nil && v.Projected == nil && v.Secret == nil {
			say("restricted: volume %s is of a kind that is not allowed", v.Name)
		}
	}
	pod := s.SecurityContext
	if pod == nil {
		pod = &corev1.PodSecurityContext{}
	}
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		own := c.SecurityContext
		if own == nil {
			own = &corev1.SecurityContext{}
		}
		nonRoot, user, seccomp := own.RunAsNonRoot, own.RunAsUser, own.SeccompProfile
		if nonRoot == nil {
			nonRoot = pod.RunAsNonRoot
		}
		if user == nil {
			user = pod.RunAsUser
		}
		if seccomp == nil {
			seccomp = pod.SeccompProfile
		}
		if nonRoot == nil || !*nonRoot || user != nil && *user == 0 {
			say("restricted: container %s: must run without root", c.Name)
		}
		if seccomp == nil || seccomp.Type == corev1.SeccompProfileTypeUnconfined {
			say("restricted: container %s: must run with a seccomp profile", c.Name)
		}
		if own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation || own.Privileged != nil && *own.Privileged ||
			own.Capabilities == nil || !slices.Contains(own.Capabilities.Drop, "ALL") || len(own.Capabilities.Add) > 0 {
			say("restricted: container %s: must drop all capabilities and escalation", c.Name)
		}
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				say("restricted: container %s: takes port %d of the host", c.Name, p.HostPort)
			}
		}
	}
}
