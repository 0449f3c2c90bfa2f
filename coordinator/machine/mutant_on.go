//go:build mutant

package machine

// bug is the planted bug. The build with this tag is for one test only.
var bug string

// Plant plants a bug. An empty name plants none.
func Plant(name string) { bug = name }

// planted reports whether the bug of this name is planted.
func planted(name string) bool { return bug == name }
