package deploy

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

var (
	fence   = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	kubeRun = regexp.MustCompile(`kubectl\b[^\n]*\brun\b[^\n]*`)
	compact = regexp.MustCompile(`compacted\s+at\s+(\d+)\s+MiB`)
	inCode  = regexp.MustCompile(`compactBytes = (\d+) << 20`)
)

// checkDocument checks the pods in a document against the policy of the namespace.
func checkDocument(path string) (problems []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, command := range kubeRun.FindAllString(string(text), -1) {
		problems = append(problems, fmt.Sprintf("%s: %s: makes a pod that the restricted policy refuses: show a manifest",
			path, command))
	}
	for _, m := range fence.FindAllSubmatch(text, -1) {
		o, err := decode(m[1])
		if err != nil && !strings.Contains(err.Error(), "not a kind that is known") { // a kind of another project
			problems = append(problems, fmt.Sprintf("%s: %v", path, err))
		}
		if spec, ok := podOf(o); ok {
			checkRestricted(spec.Spec, func(format string, args ...any) {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", path, o, fmt.Sprintf(format, args...)))
			})
		}
	}
	return problems, nil
}

// podOf returns the pod that an object runs, if it is not one of the processes' own workloads.
func podOf(o object) (corev1.PodTemplateSpec, bool) {
	switch v := o.value.(type) {
	case *corev1.Pod:
		return corev1.PodTemplateSpec{ObjectMeta: v.ObjectMeta, Spec: v.Spec}, true
	case *batchv1.Job:
		return v.Spec.Template, true
	}
	return corev1.PodTemplateSpec{}, false
}

// checkCompaction compares statements about the journal's compaction with the code.
func checkCompaction(code string, files []string) (problems []string, err error) {
	text, err := os.ReadFile(code)
	if err != nil {
		return nil, err
	}
	want := inCode.FindSubmatch(text)
	if want == nil {
		return []string{code + ": has no compactBytes any more"}, nil
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, m := range compact.FindAllSubmatch(text, -1) {
			if string(m[1]) != string(want[1]) {
				problems = append(problems, fmt.Sprintf("%s: the journal is compacted at %s MiB, not at %s", f, want[1], m[1]))
			}
		}
	}
	return problems, nil
}
