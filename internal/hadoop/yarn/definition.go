package yarn

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// These are the roles of the processes, which are the components' names, in the order of starting.
const (
	Coordinator = "coordinator"
	Store       = "store"
	Worker      = "worker"
)

// Roles lists the roles.
func Roles() []string { return []string{Coordinator, Store, Worker} }

// These are the names of files in a container's working folder.
const (
	programName = "taxon"
	runName     = "run.json"
)

// Size is the number and the size of a role's containers.
type Size struct {
	Count int
	Cores int
	// Bytes is the memory of a container.
	Bytes int64
}

// Spec describes a cluster to start.
type Spec struct {
	// Name is the name of the service.
	Name string
	// Queue is YARN's default if it is empty.
	Queue string
	// User is the user of the processes in HDFS, if there is no Kerberos.
	User string
	// Lifetime is the time in seconds after which YARN ends the service. Zero means unlimited.
	Lifetime int64
	// Sizes is by role.
	Sizes map[string]Size
	// Program is the path of the binary in HDFS.
	Program string
	// Run is the path of the file of Run in HDFS.
	Run string
	// Files are further files, by role and name. The empty role stands for all roles.
	Files map[string]map[string]string
	// Principal is the Kerberos principal. It is empty without Kerberos.
	Principal string
	// Keytab is a path in HDFS.
	Keytab string
	Env    map[string]string
}

// ErrName is wrapped by errors about names that YARN does not accept.
var ErrName = errors.New("must be lower-case letters, digits and -, begin with a letter, and have " +
	"at most 40 characters")

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// CheckName checks a service's name, which becomes a part of host names.
func CheckName(name string) error {
	if !nameForm.MatchString(name) || strings.HasSuffix(name, "-") {
		return fmt.Errorf("%q %w", name, ErrName)
	}
	return nil
}

// MiB rounds bytes up to YARN's unit.
func MiB(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// goLimit is the share of a container's memory to which Go's heap is limited. YARN kills a
// container that exceeds its memory.
const goLimit = 0.85

// Definition returns the service in YARN's form. Failures of a component neither end the service
// nor exclude a host: taxon survives any number of them, and workers are often preempted. The
// service's master may die as often as YARN allows within a minute.
func Definition(s Spec) *Service {
	def := &Service{Name: s.Name, Version: "1", Queue: s.Queue, Description: "taxon: a cluster for training classifiers",
		Configuration: &Configured{Properties: map[string]string{
			"yarn.service.container-failure.retry-interval-ms":       "1000",
			"yarn.service.container-failure-per-component.threshold": "1000000",
			"yarn.service.node-blacklist.threshold":                  "1000000",
			// How long to wait for containers that died while their master was away. The default is
			// two minutes.
			"yarn.service.container-recovery.timeout.ms": "15000",
			// By default the master's second death ends the service, even months later.
			"yarn.service.am-failure.validity-interval-ms": "60000",
		}}}
	if s.Lifetime > 0 {
		def.Lifetime = s.Lifetime
	}
	if s.Principal != "" {
		def.Principal = &Principal{Name: s.Principal, Keytab: s.Keytab}
	}
	for _, role := range Roles() {
		def.Components = append(def.Components, s.component(role))
	}
	return def
}

func (s Spec) component(role string) Component {
	size := s.Sizes[role]
	env := map[string]string{"GOMEMLIMIT": fmt.Sprintf("%dMiB", int64(goLimit*float64(MiB(size.Bytes))))}
	if s.User != "" && s.Principal == "" {
		env["HADOOP_USER_NAME"] = s.User
	}
	maps.Copy(env, s.Env)
	c := Component{
		Name: role, Number: size.Count, RestartPolicy: "ALWAYS",
		Resource:      &Resource{CPUs: size.Cores, Memory: strconv.FormatInt(MiB(size.Bytes), 10)},
		Command:       "./" + programName + " yarn run " + role + " --instance ${COMPONENT_INSTANCE_NAME} --file " + runName,
		Configuration: &Configured{Env: env},
	}
	add := func(name, src string) {
		c.Configuration.Files = append(c.Configuration.Files, File{Type: "STATIC", Src: src, Dest: name})
	}
	add(programName, s.Program)
	add(runName, s.Run)
	for _, of := range []string{"", role} {
		for _, name := range sortedKeys(s.Files[of]) {
			add(name, s.Files[of][name])
		}
	}
	return c
}

// Total returns the resources of the whole service, without its master.
func (s Spec) Total() (cores int, bytes int64) {
	for _, size := range s.Sizes {
		cores += size.Count * size.Cores
		bytes += int64(size.Count) * size.Bytes
	}
	return cores, bytes
}

// base returns the last element of a path.
func base(p string) string { return path.Base(p) }
