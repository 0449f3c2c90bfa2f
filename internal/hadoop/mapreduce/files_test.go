package mapreduce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// memoryFile is a file that ranges are read of.
type memoryFile []byte

func (m memoryFile) Size() int64 { return int64(len(m)) }

func (m memoryFile) ReadRange(p []byte, at int64) error {
	if at < 0 || at > int64(len(m)) || copy(p, m[at:]) < len(p) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// written is a segment of a few values in a step's folder, and its bytes.
func written(t *testing.T, d folder) (path string, values []store.Value, b []byte) {
	t.Helper()
	if err := os.MkdirAll(d.step(3), 0o777); err != nil {
		t.Fatal(err)
	}
	s, err := newSegment(fs.Join(d.step(3), "run-m-0"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.abort()
	for task := range uint32(5) {
		for _, name := range []string{"dual", "v/0", "v/11"} {
			v := store.Value{Key: store.Key{Job: "j", Step: 3, Task: 4 - task, Attempt: 1, Name: name},
				Data: bytes.Repeat([]byte{byte(task), byte(len(name))}, int(task)*100)}
			values = append(values, v)
			if err := s.add(v); err != nil {
				t.Fatal(err)
			}
		}
		s.result(&taxonv1.ReportRequest{Lease: &taxonv1.LeaseId{Step: 3, Task: 4 - task}})
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(s.path); err != nil {
		t.Fatal(err)
	}
	return s.path, values, b
}

// TestDamagedSegment: a segment that was cut anywhere, or in which any byte of table or
// footer was changed, is found out as a whole; a changed byte of a value, when that is read.
func TestDamagedSegment(t *testing.T) {
	d := folder(t.TempDir())
	_, _, b := written(t, d)
	_, at, err := openTable(memoryFile(b))
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if _, _, err := openTable(memoryFile(b[:n])); err == nil {
			t.Fatalf("cut to %d bytes of %d it is whole", n, len(b))
		}
		damaged := bytes.Clone(b)
		damaged[n] ^= 1 << (n % 8)
		if _, _, err := openTable(memoryFile(damaged)); (err == nil) != (uint64(n) < at.offset) {
			t.Fatalf("byte %d changed, table at %d: %v", n, at.offset, err)
		}
	}
}

// TestValues reads values in any order and company, from the segments that are listed.
func TestValues(t *testing.T) {
	d := folder(t.TempDir())
	path, values, b := written(t, d)
	v := newValues(d)
	defer v.close()
	keys := make([]store.Key, len(values))
	for i := range values {
		keys[i] = values[i].Key
	}
	ctx := context.Background()
	if got, err := v.Get(ctx, keys); err != nil || slices.ContainsFunc(got, func(b []byte) bool { return b != nil }) {
		t.Errorf("a segment that is not listed was read: %v, %v", got, err)
	}
	_, at, err := scanSegment(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.addSegments(ctx, 3, []*taxonv1.StepSegment{stepSegment("run-m-0", at, []uint32{4, 3, 2, 1, 0, 0},
		nil)}); err != nil {
		t.Fatal(err)
	}
	v.forget(3)
	rapid.Check(t, func(t *rapid.T) {
		pick := rapid.SliceOfN(rapid.IntRange(-1, len(values)-1), 0, 20).Draw(t, "pick")
		var wanted []store.Key
		for _, i := range pick {
			if i < 0 {
				wanted = append(wanted, store.Key{Job: "j", Step: 3, Task: 77, Attempt: 1, Name: "dual"})
			} else {
				wanted = append(wanted, keys[i])
			}
		}
		got, err := v.Get(ctx, wanted)
		if err != nil {
			t.Fatal(err)
		}
		for n, i := range pick {
			if i < 0 && got[n] != nil || i >= 0 && (got[n] == nil || !bytes.Equal(got[n], values[i].Data)) {
				t.Fatalf("value %d of %v is wrong", n, pick)
			}
		}
	})
	b[len(segmentMagic)+5] ^= 1 // of the first value that is not empty
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	v.forget(3)
	if _, err := v.Get(ctx, keys); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a changed byte: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	v.forget(3)
	if got, err := v.Get(ctx, keys[:1]); err != nil || got[0] != nil {
		t.Errorf("a segment that is gone: %v, %v; want it lost", got, err)
	}
}

// TestMessages: files of messages are found out when damaged.
func TestMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	want := &taxonv1.StepIndex{Segments: []*taxonv1.StepSegment{{File: "a", Tasks: []uint32{1, 2}}}}
	if err := writeMessage(path, "index", want); err != nil {
		t.Fatal(err)
	}
	got := &taxonv1.StepIndex{}
	if err := readMessage(t.Context(), path, "index", got); err != nil || !proto.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if err := readMessage(t.Context(), path, "run", got); err == nil {
		t.Error("an index was read as a run")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if parseMessage(b[:n], "index", got) == nil {
			t.Fatalf("cut to %d bytes it is whole", n)
		}
		damaged := bytes.Clone(b)
		damaged[n] ^= 2
		if parseMessage(damaged, "index", got) == nil {
			t.Fatalf("byte %d changed, and it is whole", n)
		}
	}
}

// TestShuffleKeys: keys differ, rise with the ranges, and each reducer gets a run of them.
func TestShuffleKeys(t *testing.T) {
	// Hadoop's own: WritableComparator.hashBytes("00007", 5) & 0x7fffffff.
	if got := partition([]byte("00007"), 1<<30); got != hashOfSeven%(1<<30) {
		t.Errorf("hash %d, want %d", got, hashOfSeven%(1<<30))
	}
	rapid.Check(t, func(t *rapid.T) {
		ranges := rapid.IntRange(1, 256).Draw(t, "ranges")
		reducers := rapid.IntRange(1, ranges).Draw(t, "reducers")
		keys := shuffleKeys(ranges, reducers)
		last := 0
		for r, k := range keys {
			p := partition(k, reducers)
			if p < last || p > last+1 || p >= reducers {
				t.Fatalf("range %d goes to reducer %d of %d, the one before to %d", r, p, reducers, last)
			}
			if last = p; r > 0 && bytes.Compare(keys[r-1], k) >= 0 {
				t.Fatalf("keys %q, %q", keys[r-1], k)
			}
		}
		if last != reducers-1 {
			t.Fatalf("%d reducers of %d have work", last+1, reducers)
		}
	})
}

// hashOfSeven is java.util.Arrays.hashCode("00007".getBytes()) & 0x7fffffff.
const hashOfSeven = 74435798

func FuzzTable(f *testing.F) {
	f.Add([]byte(segmentMagic))
	f.Add(append([]byte(segmentMagic), footer(uint64(len(segmentMagic)), nil)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, at, err := openTable(memoryFile(b))
		if err != nil {
			return
		}
		for _, v := range table.GetValues() {
			if v.GetOffset()+v.GetBytes() > at.offset {
				t.Fatalf("a value ends at %d, the table begins at %d", v.GetOffset()+v.GetBytes(), at.offset)
			}
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte("taxon index 1 00000000 0\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { _ = parseMessage(b, "index", &taxonv1.StepIndex{}) })
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01k\x00\x00\x00\x09\x00\x00\x00\x00\x01\x02\x03xy"))
	f.Add([]byte("\x00\x00\x00\x01k\x10\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			_, value, err := readRecord(r)
			if err != nil {
				return
			}
			if _, data, err := parsePart(value); err == nil && len(data) > len(value) {
				t.Fatal("data longer than its record")
			}
		}
	})
}

func FuzzLine(f *testing.F) {
	f.Add("12\tCAESAWo=")
	f.Fuzz(func(_ *testing.T, line string) { _, _ = parseLine(line) })
}

// TestRecords: what is written is read; a record cut short is an error.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		w := newShuffleWriter(&b)
		data := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 5).Draw(t, "data")
		for i, d := range data {
			if err := w.write(fmt.Appendf(nil, "%05d", i), store.Value{Key: store.Key{Step: 7, Task: uint32(i), Attempt: 2},
				Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Clone(b.Bytes())
		for i, d := range data {
			key, value, err := readRecord(&b)
			if err != nil || string(key) != fmt.Sprintf("%05d", i) {
				t.Fatalf("%q, %v", key, err)
			}
			at, got, err := parsePart(value)
			if err != nil || !bytes.Equal(got, d) || at != (taxonv1.Place{Step: 7, Task: uint32(i), Attempt: 2}) {
				t.Fatalf("%v %v %v", at, got, err)
			}
			if len(d) > 0 {
				value[len(value)-1] ^= 1
				if _, _, err := parsePart(value); err == nil {
					t.Fatal("a changed byte was not found")
				}
			}
		}
		if _, _, err := readRecord(&b); err != io.EOF {
			t.Fatalf("behind the last: %v", err)
		}
		r := bytes.NewReader(whole[:len(whole)-1])
		var err error
		for err == nil {
			_, _, err = readRecord(r)
		}
		if err != io.ErrUnexpectedEOF {
			t.Fatalf("cut short: %v", err)
		}
	})
}

// TestExplain: what Hadoop 3.4.2 says of mistakes becomes a line for the user; of failures,
// the task's own words where there are any.
func TestExplain(t *testing.T) {
	for _, c := range []struct{ said, failure, want string }{
		{"java.io.IOException: Failed to run job : Application application_1_0001 submitted by user root to " +
			"unknown queue: nope", "", "queue nope: does not exist"},
		{"org.apache.hadoop.yarn.exceptions.YarnException: org.apache.hadoop.security.AccessControlException: User bob " +
			"does not have permission to submit application_1_0002 to queue root.prod", "", "queue root.prod: takes " +
			"no jobs of user bob"},
		{"2026 INFO mapreduce.Job: Job job_1_0002 failed with state KILLED due to: MAP capability required is more than " +
			"the supported max container capability in the cluster. Killing the Job. mapResourceRequest: <memory:20880, " +
			"vCores:1> maxContainerCapability:<memory:6144, vCores:16>", "", settingMemory + ": a task's container would have " +
			"20880 MiB, this cluster's largest have 6144"},
		{"Job job_1_0002 failed with state KILLED due to: REDUCE capability required is more than the supported max " +
			"container capability in the cluster. Killing the Job. reduceResourceRequest: <memory:512, vCores:400> " +
			"maxContainerCapability:<memory:6144, vCores:16>", "", settingCores + ": a task's container would have 400 cores, " +
			"this cluster's largest have 16"},
		{"Job job_1_0003 failed with state KILLED due to: The required MAP capability is more than the supported max " +
			"container capability in the cluster. Killing the Job. mapResourceRequest: <memory:409, vCores:300> " +
			"maxContainerCapability:<memory:16384, vCores:16>", "", settingCores + ": a task's container would have 300 " +
			"cores, this cluster's largest have 16"},
		{"Caused by: org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException: Invalid resource request! Cannot " +
			"allocate containers as requested resource is greater than maximum allowed allocation. Requested resource " +
			"type=[memory-mb], Requested resource=<memory:9000, vCores:1>, maximum allowed allocation=<memory:8192, " +
			"vCores:4>, please note that", "", settingMemory + ": a task's container would have 9000 MiB"},
		{"2026-11-21 INFO ipc.Client: Retrying connect to server: localhost/127.0.0.1:2. Already tried 3 time(s)", "",
			"nobody answers there"},
		{"java.net.ConnectException: Call From host/10.0.0.1 to nn.example:8020 failed on connection exception: " +
			"java.net.ConnectException: Connection refused", "", "nn.example:8020: nobody answers there"},
		{`org.apache.hadoop.security.AccessControlException: Permission denied: user=bob, access=WRITE, inode="/tmp/hadoop-yarn":root:supergroup:drwx------`, "", "/tmp/hadoop-yarn: user bob may not do this"},
		{"Error: Could not find or load main class org.apache.hadoop.streaming.HadoopStreaming", "", settingMapred +
			": Hadoop's command does not find its class"},
		{"Container [pid=1,containerID=container_1] is running 12B beyond the 'PHYSICAL' memory limit. Current usage", "",
			settingMemory + ": a task took more memory"},
	} {
		s := &commandOutput{job: &Job{}}
		if _, err := s.Write([]byte("WARN first\n" + c.said + "\nlast\n")); err != nil {
			t.Fatal(err)
		}
		if err := explain(s, c.failure, errors.New("exit status 1")); !fs.IsInput(err) || !strings.Contains(err.Error(),
			c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", c.said, err, c.want)
		}
	}
	s := &commandOutput{job: &Job{}}
	if _, err := s.Write([]byte("INFO mapreduce.Job: Running job: job_17_0004\nINFO: map 10% reduce 0%\nError: " +
		"java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code " +
		"1\n\tat org.apache\nrest")); err != nil {
		t.Fatal(err)
	}
	for failure, want := range map[string]string{"": "subprocess failed with code 1",
		"step 3: the disk is full\n": "step 3: the disk is full"} {
		err := explain(s, failure, errors.New("exit status 1"))
		if fs.IsInput(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(),
			"yarn logs -applicationId application_17_0004") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestProperty reads Hadoop's configuration files.
func TestProperty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mapred-site.xml")
	if v, err := Property(path, "a"); v != "" || err != nil {
		t.Errorf("no file: %q, %v", v, err)
	}
	for text, want := range map[string]string{
		"<configuration><property><name>a</name><value>1</value></property><property><name> a </name><value> " +
			"yarn\n</value></property></configuration>": "yarn",
		"<configuration/>": "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if v, err := Property(path, "a"); v != want || err != nil {
			t.Errorf("%q, %v, want %q", v, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("<configuration"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Property(path, "a"); !fs.IsInput(err) {
		t.Errorf("no configuration: %v", err)
	}
}

// TestHadoopURI: paths as Hadoop takes them.
func TestHadoopURI(t *testing.T) {
	for in, want := range map[string]string{
		"hdfs://alice@nn:8020/a/b": "hdfs://nn:8020/a/b", "hdfs:///a": "hdfs:///a", "/x/y": "file:///x/y",
	} {
		if got := hadoopURI(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestStreamingLogs: Hadoop's command is told to log what its caller reads, whatever the
// environment says, else neither the job's id nor the reason of a failure would be known.
func TestStreamingLogs(t *testing.T) {
	t.Setenv("HADOOP_ROOT_LOGGER", "WARN,console")
	t.Setenv("HADOOP_LOGLEVEL", "ERROR")
	mapred := filepath.Join(t.TempDir(), "mapred")
	script := `#!/bin/sh
case $HADOOP_ROOT_LOGGER-$HADOOP_LOGLEVEL in INFO,console-INFO)
echo "INFO mapreduce.Job: Running job: job_1_0002" >&2
echo "INFO mapreduce.Job:  map 40% reduce 0%" >&2
echo "INFO mapreduce.Job:  map 100% reduce 13%" >&2
echo "MAP capability required is more than the supported max container capability in the cluster. mapResourceRequest: <memory:512, vCores:9> maxContainerCapability:<memory:6144, vCores:8>" >&2;;
esac
echo "Job not successful!" >&2; exit 1
`
	if err := os.WriteFile(mapred, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	id, moves := "", ""
	s := &Streaming{Mapred: []string{mapred}, Binary: "taxon", Data: "data"}
	err := s.Run(t.Context(), &Job{State: t.TempDir(), Run: "r", Started: func(name string) { id = name },
		Moved: func(text string) { moves += text + "; " }})
	if !fs.IsInput(err) || !strings.HasPrefix(err.Error(), "task-cores in") || id != "job_1_0002" ||
		moves != "map 40%, reduce 0%; map 100%, reduce 13%; " {
		t.Errorf("%v, job %q, %q", err, id, moves)
	}
}
