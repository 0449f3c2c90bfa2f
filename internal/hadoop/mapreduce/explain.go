package mapreduce

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"taxon/internal/fs"
)

// These are the settings of the jobs, as errors name them.
const (
	settingMemory = "task-memory in ‹hadoop-conf›"
	settingCores  = "task-cores in ‹hadoop-conf›"
	settingMapred = "mapred in ‹hadoop-conf›"
)

// complaints lists Hadoop's messages about mistakes that the user can fix. $1 and $2 stand for what
// the pattern has matched. Patterns are compiled when they are first needed.
var complaints = []struct {
	pattern string
	// what is the message for the user.
	what string
	say  string
}{
	{`to unknown queue:? ([\w.\-]+)`, "queue $1", "does not exist on this cluster: choose another queue"},
	{`(?:to|in) (?:a )?non-leaf queue:? ([\w.\-]+)`, "queue $1", "takes no jobs, as it has queues below it: choose one " +
		"of those"},
	{`[Uu]ser (\S+) (?:cannot submit|does not have permission to submit).* queue:? ([\w.\-]+)`, "queue $2",
		"takes no jobs of user $1: ask its administrator, or choose another queue"},
	{`is running (?:\d+B )?beyond (?:the )?'?(?:PHYSICAL|physical|VIRTUAL|virtual)'? memory limit`, settingMemory,
		"a task took more memory than its container has: give more"},
	{`Permission denied: user=([^,\s]+), access=(\w+), inode="([^"]+)"`, "$3", "user $1 may not do this in HDFS ($2 is " +
		"denied): choose another folder, or ask its owner"},
	{`Name ?node is in safe ?mode`, "HDFS", "the name node is in safe mode: try again when it has left it"},
	{`[Cc]all From \S+ to (\S+?:\d+) failed on connection exception`, "$1", "nobody answers there: check that it runs, " +
		"and the configuration in HADOOP_CONF_DIR"},
	{`Retrying connect to server: (?:[^\s/]*/)?([\w.\-]+(?:/[\d.]+)?:\d+)`, "$1", "nobody answers there: check that it " +
		"runs, and the configuration in HADOOP_CONF_DIR"},
	{`java\.net\.UnknownHostException: (?:Invalid host name: )?.*?\(?unknown\)?.*?"?([\w.\-]+)"?:?`, "$1",
		"no host has this name: check the configuration in HADOOP_CONF_DIR"},
	{`Could not find or load main class (\S+)`, settingMapred, "Hadoop's command does not find its class $1: name a " +
		"complete installation"},
}

// oversized are Hadoop's messages about containers that no host can provide: from the resource
// manager (<memory:1, vCores:2> requested, then the largest allowed), and from the application
// master.
var oversized = []string{
	`(?:MAP|REDUCE) capability (?:required )?is more than the supported max container capability in the cluster.*?` +
		capability + `.*?maxContainerCapability: ?` + capability,
	`Invalid resource request!.*?Requested resource=` + capability + `.*?maximum allowed allocation=` + capability,
}

// capability matches the size of a container in the form in which Hadoop writes it.
const capability = `<memory:(\d+), vCores:(\d+)[^>]*>`

// tooLarge returns the error for a container that no host can provide, if Hadoop's text reports
// one.
func tooLarge(text string) error {
	for _, o := range oversized {
		m := regexp.MustCompile(o).FindStringSubmatch(text)
		if m == nil {
			continue
		}
		var n [4]int64 // requested, and largest allowed
		for i := range n {
			n[i], _ = strconv.ParseInt(m[i+1], 10, 64) // digits; too many give the largest number
		}
		if err := checkContainer(n[0], int(n[1]), n[2], int(n[3])); err != nil {
			return err
		}
	}
	return nil
}

// checkContainer returns an input error that names the option if a task's container of mb MiB and
// some cores exceeds the largest allowed, maxMB and maxCores.
func checkContainer(mb int64, cores int, maxMB int64, maxCores int) error {
	if cores > maxCores {
		return fs.Inputf(settingCores, 0, "a task's container would have %d cores, this cluster's largest "+
			"have %d: give fewer", cores, maxCores)
	}
	if mb > maxMB {
		return fs.Inputf(settingMemory, 0, "a task's container would have %d MiB, this cluster's largest have %d: give "+
			"less, or fewer task-cores", mb, maxMB)
	}
	return nil
}

// explain returns the error of a failed job. If the user can correct it, it is an input error.
// Otherwise it is the error that a task left or, if there is none, the last lines of Hadoop's
// output.
func explain(s *commandOutput, failure string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.lines, "\n")
	if err := tooLarge(text); err != nil {
		return err
	}
	for _, c := range complaints {
		pattern := regexp.MustCompile(c.pattern)
		m := pattern.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		what, say := pattern.ExpandString(nil, c.what, text, m), pattern.ExpandString(nil, c.say, text, m)
		return fs.Inputf(string(what), 0, "%s", say)
	}
	where := ""
	if s.jobID != "" && !strings.HasPrefix(s.jobID, localJob) {
		where = fmt.Sprintf(" (yarn logs -applicationId %s tells more)", strings.Replace(s.jobID, "job_", "application_", 1))
	}
	if failure != "" {
		return fmt.Errorf("MapReduce job failed: %s%s", oneLine(failure), where)
	}
	return fmt.Errorf("MapReduce job failed: %w: %s%s", err, lastWords(s.lines), where)
}

// lastWords returns the most informative line of Hadoop's output.
func lastWords(lines []string) string {
	for _, sign := range []string{"Exception", "ERROR", "Error"} {
		for i := len(lines) - 1; i >= 0; i-- {
			if strings.Contains(lines[i], sign) && !strings.HasPrefix(strings.TrimSpace(lines[i]), "at ") {
				return oneLine(lines[i])
			}
		}
	}
	if len(lines) == 0 {
		return "it said nothing"
	}
	return oneLine(lines[len(lines)-1])
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), errorBytes)]
}

// failedPrefix is the prefix of files in which tasks leave their errors.
const failedPrefix = "failed-"

// Tell writes a task's error to a place where the driver finds it, because Hadoop's command reports
// only the exit status. It returns the error.
func (t Task) Tell(err error) error {
	if err == nil {
		return nil
	}
	path := fs.Join(folder(t.State).run(t.Run), failedPrefix+t.Attempt)
	return errors.Join(err, fs.WriteFile(path, []byte(err.Error())))
}
