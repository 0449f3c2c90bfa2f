package deploy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hardening lists the settings that every unit must have under [Service].
var hardening = []string{
	"NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes",
	"ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectControlGroups=yes", "RestrictSUIDSGID=yes",
	"MemoryDenyWriteExecute=yes", "LockPersonality=yes", "CapabilityBoundingSet=", "SystemCallFilter=@system-service",
	"RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "DynamicUser=yes", "Restart=always",
}

// together lists the settings by which units run as one user who may open the store's files,
// because the worker on a store's host reads and writes values as files.
var together = map[string][]string{
	// snapshots are in a folder that the unit may write
	"taxon-coordinator.service": {"StateDirectory=taxon-coordinator taxon-snapshots"},
	"taxon-store.service":       {"User=taxon", "StateDirectory=taxon-store"},
	"taxon-worker.service":      {"User=taxon", "StateDirectory=taxon-store"},
}

// checkUnits checks the systemd units of a folder.
func checkUnits(dir string) (problems []string, checked int, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.service"))
	if err != nil {
		return nil, 0, err
	}
	if len(files) == 0 {
		return []string{dir + ": no units"}, 0, nil
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, 0, err
		}
		for _, p := range checkUnit(text, together[filepath.Base(f)]) {
			problems = append(problems, f+": "+p)
		}
	}
	return problems, len(files), nil
}

// checkUnit checks one unit's text.
func checkUnit(text []byte, more []string) (problems []string) {
	section := ""
	lines := map[string][]string{}
	for number, line := range bytes.Split(text, []byte("\n")) {
		l := string(bytes.TrimSpace(line))
		switch {
		case l == "" || l[0] == '#' || l[0] == ';':
		case strings.HasSuffix(l, "\\"):
			problems = append(problems, fmt.Sprintf("%d: continued lines hide mistakes: use Environment or one line", number+1))
		case l[0] == '[':
			section = strings.Trim(l, "[]")
		case section == "" || !strings.Contains(l, "="):
			problems = append(problems, fmt.Sprintf("%d: neither a section nor a setting: %s", number+1, l))
		default:
			lines[section] = append(lines[section], l)
		}
	}
	if !slices.Contains(lines["Unit"], "StartLimitIntervalSec=0") {
		problems = append(problems, "no line StartLimitIntervalSec=0: after a few quick failures it would stay down")
	}
	if bytes.Contains(text, []byte("%d")) {
		problems = append(problems, "%d needs systemd 250: use ${CREDENTIALS_DIRECTORY}")
	}
	for _, want := range slices.Concat(hardening, more) {
		if !slices.Contains(lines["Service"], want) {
			problems = append(problems, "no line "+want)
		}
	}
	for _, s := range []string{"Unit", "Service", "Install"} {
		if len(lines[s]) == 0 {
			problems = append(problems, "no section ["+s+"]")
		}
	}
	return problems
}
