package yarn

import "strings"

// Service is the part of YARN's definition and status of a service that is used here. Names are
// YARN's.
type Service struct {
	Name          string      `json:"name"`
	ID            string      `json:"id,omitempty"` // of the application, in a status
	Version       string      `json:"version,omitempty"`
	Description   string      `json:"description,omitempty"`
	Queue         string      `json:"queue,omitempty"`
	State         string      `json:"state,omitempty"`
	Diagnostics   string      `json:"diagnostics,omitempty"`
	Lifetime      int64       `json:"lifetime,omitempty"` // seconds
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

// Resource is what a container may take.
type Resource struct {
	CPUs   int    `json:"cpus"`
	Memory string `json:"memory"` // MiB, as a number in a string
}

// Configured is what a service or its containers find in their environment.
type Configured struct {
	Properties map[string]string `json:"properties,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Files      []File            `json:"files,omitempty"`
}

// File is copied into a container's working folder before it starts.
type File struct {
	Type string `json:"type"` // STATIC: as it is
	Src  string `json:"src_file"`
	Dest string `json:"dest_file"`
}

// Principal is the Kerberos identity of a service's master.
type Principal struct {
	Name   string `json:"principal_name"`
	Keytab string `json:"keytab"` // a URI
}

// Container is a running container, in a status.
type Container struct {
	ID       string `json:"id"`
	Instance string `json:"component_instance_name"` // worker-0
	State    string `json:"state"`
	Host     string `json:"bare_host"`
	HostName string `json:"hostname"`
	IP       string `json:"ip"`
	Launched int64  `json:"launch_time"` // milliseconds since 1970
}

// Folder is the cluster's folder, from which its processes start; "": none, so the service is not
// taxon's.
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

// Component finds a component by its name; nil: there is none.
func (s *Service) Component(name string) *Component {
	for i := range s.Components {
		if s.Components[i].Name == name {
			return &s.Components[i]
		}
	}
	return nil
}
