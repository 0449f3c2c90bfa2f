package method

import "fmt"

// NoStructure refuses problems with a structure, for methods that train without one.
func NoStructure(name string, p *Problem) error {
	if p.Tree.IsGraph() || len(p.Tree.Internals()) > 0 {
		return fmt.Errorf("the job has a structure, and method %s is trained without one: leave it out", name)
	}
	return nil
}
