package secure

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc"
)

// Policy lists, for each full method ("/taxon.v1.Jobs/Submit"), the roles that may call it. Admin
// may call every method. A method with Anyone may be called without an identity.
type Policy map[string][]Role

// Anyone must be the only entry of the list of an open method.
const Anyone Role = "anyone"

// anyRole is for methods that every known caller may use.
var anyRole = []Role{Submit, Worker, Store, ReadOnly, Coordinator}

// DefaultPolicy covers all services of taxon's processes. A method that is missing in it may be
// called by admin only, and fails a test of this package.
func DefaultPolicy() Policy {
	p := Policy{
		"/grpc.health.v1.Health/Check": {Anyone},
		"/grpc.health.v1.Health/List":  {Anyone},
		"/grpc.health.v1.Health/Watch": {Anyone},

		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      anyRole,
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": anyRole,
	}
	p.add("taxon.v1.Jobs", methods{
		"Submit":   {Submit},
		"Cancel":   {Submit},
		"Resume":   {Submit},
		"Restore":  {Submit},
		"Status":   {Submit, ReadOnly},
		"Watch":    {Submit, ReadOnly},
		"ListJobs": {Submit, ReadOnly, Store}, // a shard that was away asks what it missed
		"Logs":     {Submit, ReadOnly},
		"Workers":  {Submit, ReadOnly},
		"Timeline": {Submit, ReadOnly},
		"Describe": {Submit, ReadOnly, Store},
		"Stores":   anyRole, // everybody who reads or writes values needs them
		"Drain":    {Admin}, // it affects everybody's jobs

		"ForgetStore": {Admin},
		"Strays":      {Admin},
	})
	p.add("taxon.v1.Members", methods{
		"JoinStore":  {Store},
		"LeaveStore": {Store},
	})
	p.add("taxon.v1.Tasks", methods{
		"Register": {Worker},
		"Job":      {Worker},
		"Lease":    {Worker},
		"Renew":    {Worker},
		"Report":   {Worker},
		"Leave":    {Worker},
	})
	p.add("taxon.v1.Models", methods{
		"Predict":    {Submit, ReadOnly},
		"Explain":    {Submit, ReadOnly},
		"ListModels": {Submit, ReadOnly},
	})
	p.add("taxon.v1.Store", methods{
		// A submitter uploads instances (except those already there) and reads its job's weights.
		"Put":    {Worker, Store, Submit, Coordinator},
		"Get":    {Worker, Store, Submit, Coordinator},
		"Commit": {Coordinator},
		"Drop":   {Coordinator},
		"List":   {Coordinator, Store, Submit},
	})
	return p
}

// methods lists the roles by the names of a service's methods.
type methods map[string][]Role

// add adds the methods of a service.
func (p Policy) add(service string, m methods) {
	for name, roles := range m {
		p["/"+service+"/"+name] = roles
	}
}

// Check returns an error that lists the registered methods which the policy does not name. It must
// be called after all services are registered.
func (p Policy) Check(s *grpc.Server) error {
	var missing []string
	for service, info := range s.GetServiceInfo() {
		for _, m := range info.Methods {
			if full := "/" + service + "/" + m.Name; p[full] == nil {
				missing = append(missing, full)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("secure: no role may call %v: name them in the policy", missing)
}

// clone returns a copy for a server's own use.
func (p Policy) clone() Policy { return maps.Clone(p) }
