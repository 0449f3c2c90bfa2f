//go:build unix && !linux

package supervise

import "os/exec"

func start(cmd *exec.Cmd) error { return cmd.Start() }
