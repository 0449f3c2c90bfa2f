package yarn

import "strings"

// Service is the part of YARN's definition and status of a service that is used here. YARN defines
// the JSON names.
type Service struct {
	Name string `json:"name"`
	// ID is the id of the application. It is set in a status.
	ID          string `json:"id,omitempty"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	Queue       string `json:"queue,omitempty"`
	State       string `json:"state,omitempty"`
	Diagnostics string `json:"diagnostics,omitempty"`
	// Lifetime is in seconds.
	Lifetime      int64       `json:"lifetime,omitempty"`
	Configuration *Configured `json:"configuration,omitempty"`
	Principal     *Principal  `json:"kerberos_principal,omitempty"`
	Components    []Component `json:"components,omitempty"`
}

// Component is a set of equal containers.
type Component struct {
	Name          string      `json:"name"`
	State         string      `json:"state,omitempty"`
	Number        int         `json:"number_of_containers"`
	Command       string      `json:"launch_command,omitempty"`
	RestartPolicy string      `json:"restart_policy,omitempty"`
	Resource      *Resource   `json:"resource,omitempty"`
	Configuration *Configured `json:"configuration,omitempty"`
	Containers    []Container `json:"containers,omitempty"`
}

// Resource is the size of a container.
type Resource struct {
	CPUs int `json:"cpus"`
	// Memory is in MiB, as a number in a string.
	Memory string `json:"memory"`
}

// Configured is the environment of a service or of its containers.
type Configured struct {
	Properties map[string]string `json:"properties,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Files      []File            `json:"files,omitempty"`
}

// File is copied into a container's working folder before it starts.
type File struct {
	// Type is STATIC for a file that is copied unchanged.
	Type string `json:"type"`
	Src  string `json:"src_file"`
	Dest string `json:"dest_file"`
}

// Principal is the Kerberos identity of a service's master.
type Principal struct {
	Name string `json:"principal_name"`
	// Keytab is a URI.
	Keytab string `json:"keytab"`
}

// Container is a running container, in a status.
type Container struct {
	ID string `json:"id"`
	// Instance is a name such as worker-0.
	Instance string `json:"component_instance_name"`
	State    string `json:"state"`
	Host     string `json:"bare_host"`
	HostName string `json:"hostname"`
	IP       string `json:"ip"`
	// Launched is in milliseconds since 1970.
	Launched int64 `json:"launch_time"`
}

// Folder returns the cluster's folder, from which its processes start. It is empty if the service
// is not taxon's.
func (s *Service) Folder() string {
	for _, c := range s.Components {
		if c.Configuration == nil {
			continue
		}
		for _, f := range c.Configuration.Files {
			if dir, ok := strings.CutSuffix(f.Src, "/"+runName); ok && f.Dest == runName {
				return dir
			}
		}
	}
	return ""
}

// Component returns a component by its name, or nil if there is none.
func (s *Service) Component(name string) *Component {
	for i := range s.Components {
		if s.Components[i].Name == name {
			return &s.Components[i]
		}
	}
	return nil
}
