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

// Roles of the processes: the components' names, in the order of starting.
const (
	Coordinator = "coordinator"
	Store       = "store"
	Worker      = "worker"
)

// Roles lists the roles.
func Roles() []string { return []string{Coordinator, Store, Worker} }

// Names in a container's working folder.
const (
	programName = "taxon"
	runName     = "run.json"
)

// Size is what a role's container gets.
type Size struct {
	Count int
	Cores int
	Bytes int64 // of memory
}

// Spec describes a cluster to start.
type Spec struct {
	Name  string // of the service
	Queue string // "": YARN's default
	User  string // user of the processes in HDFS, if there is no Kerberos
	// Lifetime is in seconds; then YARN ends the service; 0: unlimited.
	Lifetime int64
	Sizes    map[string]Size // by role
	Program  string          // the binary, a path in HDFS
	Run      string          // the file of Run, a path in HDFS
	// Files are further files, by role and name; role "": all roles.
	Files     map[string]map[string]string
	Principal string // of Kerberos; "": none
	Keytab    string // path in HDFS
	Env       map[string]string
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

// goLimit is the share of a container's memory below which Go's heap is kept. YARN kills a
// container that takes more than it has.
const goLimit = 0.85

// Definition is the service in YARN's form. A component's failures neither end the service nor
// keep it off a host: taxon survives any number of them, and workers on machines that are taken
// away are nothing unusual. The service's master may die as often as YARN allows within a minute.
func Definition(s Spec) *Service {
	def := &Service{Name: s.Name, Version: "1", Queue: s.Queue, Description: "taxon: a cluster for training classifiers",
		Configuration: &Configured{Properties: map[string]string{
			"yarn.service.container-failure.retry-interval-ms":       "1000",
			"yarn.service.container-failure-per-component.threshold": "1000000",
			"yarn.service.node-blacklist.threshold":                  "1000000",
			// wait so long for containers that died while their master was away, not two minutes
			"yarn.service.container-recovery.timeout.ms": "15000",
			// else the master's second death ends the service, even months later
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

// Total is what the whole service asks for, without its master.
func (s Spec) Total() (cores int, bytes int64) {
	for _, size := range s.Sizes {
		cores += size.Count * size.Cores
		bytes += int64(size.Count) * size.Bytes
	}
	return cores, bytes
}

// base is a path's last part.
func base(p string) string { return path.Base(p) }
