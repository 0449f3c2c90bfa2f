package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	taxonv1 "taxon/proto/taxon/v1"
)

// maxShards bounds the known store shards. Their ids and addresses are kept until they are
// forgotten.
const maxShards = 1024

// These errors are wrapped by the Refused actions of events about store shards.
var (
	ErrNoShards       = errors.New("no store shard is up: start one (taxon store)")
	ErrFewShards      = errors.New("start more shards, or ask for fewer replicas")
	ErrDuplicateShard = errors.New("another store shard of this id is up")
	ErrBadMember      = errors.New("bad registration")
	ErrShardInUse     = errors.New("it can't be forgotten")
)

// shardState is a store shard that has joined. Only its id and address are journaled. After a
// restart every shard has the time of a lease to be heard.
type shardState struct {
	id, addr string
	// lastReport is the shard's last heartbeat.
	lastReport JoinShard
	seen       Tick
	contact    contact
	up, empty  bool
	// claimant is the address at which another process wants to be the shard. It is empty if there
	// is none.
	claimant string
	// bothLive says that the shard was heard after the claimant, so that both processes live.
	bothLive bool
}

// shard returns the shard of an id, or nil if none has joined under it.
func (m *Machine) shard(id string) *shardState {
	for _, s := range m.shards {
		if s.id == id {
			return s
		}
	}
	return nil
}

// joinShard adds a shard, or records that it lives.
func (m *Machine) joinShard(e JoinShard) error {
	switch {
	case e.ID == "" || len(e.ID) > 64 || e.Addr == "" || len(e.Addr) > 256:
		return fmt.Errorf("store shard: %w: give an id of at most 64 bytes and an address", ErrBadMember)
	case m.shard(e.ID) == nil && len(m.shards) >= maxShards:
		return fmt.Errorf("store shard %s: %w: %d shards have joined, the most there may be: `taxon stores forget` takes "+
			"those out that are gone", e.ID, ErrBadMember, maxShards)
	}
	if err := m.checkClaimant(e); err != nil {
		return err
	}
	if s := m.shard(e.ID); s == nil || s.addr != e.Addr {
		m.decide(Record{Kind: recordShard, Worker: e.ID, Name: e.Addr})
	}
	s := m.shard(e.ID)
	m.tellReport(s, e)
	if !s.up || s.empty != e.Empty {
		m.shardsChanged()
		m.out = append(m.out, Wake{}) // jobs may be waiting for it
	}
	s.bothLive = s.claimant != ""
	s.up, s.empty, s.seen, s.contact, s.lastReport = true, e.Empty, m.now, m.contactNow(), e
	return nil
}

// checkClaimant returns an error if a process may not replace a shard that is up at another
// address. A shard that has moved is accepted when its old process was silent for longer than a
// heartbeat. If the old process is heard again, one folder is a copy of the other, and the later
// process must end.
func (m *Machine) checkClaimant(e JoinShard) error {
	s := m.shard(e.ID)
	if s == nil || s.addr == e.Addr {
		return nil
	}
	beat := m.limits.Lease / 3
	if !s.up || m.listening()-s.contact.at > beat+beat/4 {
		s.claimant, s.bothLive = "", false
		return nil
	}
	if s.claimant != e.Addr {
		s.claimant, s.bothLive = e.Addr, false
	}
	if s.bothLive {
		return fmt.Errorf("store shard %s at %s: %w, at %s: a copy of its folder is the same shard: take a new folder", e.ID,
			e.Addr, ErrDuplicateShard, s.addr)
	}
	return fmt.Errorf("store shard %s at %s: was at %s a moment ago: waits to see whether that is gone", e.ID, e.Addr,
		s.addr)
}

// leaveShard marks a shard that has shut down.
func (m *Machine) leaveShard(id string) {
	if s := m.shard(id); s != nil && s.up {
		s.up = false
		m.shardsChanged()
		m.tell(Notice{Level: levelInfo, Text: "store left", Store: id})
	}
}

// forgetShard removes a shard from the list. If it is started again with its folder it joins again,
// and jobs find their values on it.
func (m *Machine) forgetShard(e ForgetShard) error {
	s, jobs := m.shard(e.ID), m.jobsOn(e.ID)
	switch {
	case s == nil:
		return fmt.Errorf("store shard %s: %w", e.ID, ErrUnknownMember)
	case s.up:
		return fmt.Errorf("store shard %s: %w while it is up: end its process, and wait until `taxon stores` "+
			"says that it is down", e.ID, ErrShardInUse)
	case len(jobs) > 0 && !e.Force:
		return fmt.Errorf("store shard %s: %w as values of jobs lie on it: %s: discard these jobs, or give ‹yes›", e.ID,
			ErrShardInUse, strings.Join(jobs, ", "))
	default:
		m.decide(Record{Kind: recordUnshard, Worker: e.ID, By: e.By})
	}
	return nil
}

// applyUnshard removes a shard.
func (m *Machine) applyUnshard(r *Record) error {
	s := m.shard(r.Worker)
	if s == nil {
		return fmt.Errorf("record unshard names store shard %q, which is not known", r.Worker)
	}
	m.shards = slices.DeleteFunc(m.shards, func(k *shardState) bool { return k == s })
	m.shardsChanged()
	return nil
}

// maxJobsOn bounds the jobs that are listed for a shard.
const maxJobsOn = 100

// jobsOn lists the ids of the jobs that have values on a shard.
func (m *Machine) jobsOn(shard string) []string {
	var out []string
	for _, j := range m.jobs {
		if !j.Dropped && slices.Contains(j.Shards, shard) && len(out) < maxJobsOn {
			out = append(out, j.ID)
		}
	}
	return out
}

// loseSilentShards marks shards as down that were silent for the time of a lease.
func (m *Machine) loseSilentShards() {
	for _, s := range m.shards {
		if s.up && m.silent(&s.contact) {
			s.up = false
			m.shardsChanged()
			m.tell(Notice{Level: levelWarn, Text: "store lost", Store: s.id, Reason: "silent"})
		}
	}
}

// shardsChanged raises the version that workers compare. It follows the clock, so that it also
// rises across restarts.
func (m *Machine) shardsChanged() {
	m.shardsVersion = max(m.shardsVersion+1, uint64(m.now))
	m.out = append(m.out, Changed{})
}

// applyShard adds a shard or changes its address. The shard is down until its report is applied.
func (m *Machine) applyShard(r *Record) {
	s := m.shard(r.Worker)
	if s == nil {
		s = &shardState{id: r.Worker}
		m.shards = append(m.shards, s)
	}
	s.addr, s.seen, s.up = r.Name, r.At, false
}

// chooseShards returns the shards of a new job: those that are up, in order of joining.
func (m *Machine) chooseShards(replicas uint32) ([]string, error) {
	var ids []string
	for _, s := range m.shards {
		if s.up {
			ids = append(ids, s.id)
		}
	}
	switch n := max(replicas, 1); {
	case m.limits.NeedShards && len(ids) == 0:
		return nil, ErrNoShards
	case len(ids) > 0 && int(n) > len(ids):
		return nil, errFewShards(int(n), len(ids))
	}
	return ids, nil
}

// errFewShards says that there are fewer shards up than copies wanted.
func errFewShards(replicas, up int) error {
	if up == 1 {
		return fmt.Errorf("%d copies of each value need as many store shards, 1 is up: %w", replicas, ErrFewShards)
	}
	return fmt.Errorf("%d copies of each value need as many store shards, %d are up: %w", replicas, up, ErrFewShards)
}

// Shards describes the known shards, in order of joining, and returns the version of the
// description.
func (m *Machine) Shards() ([]*taxonv1.Shard, uint64) {
	out := make([]*taxonv1.Shard, 0, len(m.shards))
	for _, s := range m.shards {
		out = append(out, s.message())
	}
	return out, m.shardsVersion
}

// Stores describes the known shards with the jobs that have values on them.
func (m *Machine) Stores() ([]*taxonv1.Shard, uint64) {
	shards, version := m.Shards()
	for _, s := range shards {
		s.Jobs = m.jobsOn(s.Id)
	}
	return shards, version
}

// JobShards describes the shards that a job's values lie on, in order of placement, and returns the
// number of copies of each value. A job in a store without shards has none.
func (m *Machine) JobShards(id string) ([]*taxonv1.Shard, uint32, error) {
	j, err := m.known(id)
	if err != nil {
		return nil, 0, err
	}
	var out []*taxonv1.Shard
	for _, id := range j.Shards {
		if s := m.shard(id); s != nil {
			out = append(out, s.message())
		} else { // of another cluster's journal
			out = append(out, &taxonv1.Shard{Id: id, State: taxonv1.MemberState_MEMBER_STATE_DOWN})
		}
	}
	return out, max(j.Replicas, 1), nil
}

// message describes the shard as a message.
func (s *shardState) message() *taxonv1.Shard {
	state := taxonv1.MemberState_MEMBER_STATE_DOWN
	if s.up {
		state = taxonv1.MemberState_MEMBER_STATE_UP
	}
	return &taxonv1.Shard{Id: s.id, Addr: s.addr, State: state, Bytes: s.lastReport.Bytes, Capacity: s.lastReport.Capacity,
		SeenUnixMs: s.seen.Milliseconds(), Empty: s.empty, Values: s.lastReport.Values, Free: s.lastReport.Free,
		Reserve: s.lastReport.Reserve, Version: clip(s.lastReport.Version, 64),
		Repairing: s.lastReport.Repairing}
}

// blocked lists the shards that are away if there are so many that some of the job's values have no
// copy elsewhere. Otherwise it returns nil, and the job can continue.
func (m *Machine) blocked(j *job) []string {
	if away := m.away(j); len(away) >= int(max(j.Replicas, 1)) {
		return away
	}
	return nil
}

// checkStores fails a running job whose shards have been away for Limits.MaxOutage, and at once a
// job whose shards were forgotten. The job can be resumed when they are back with their folders.
func (m *Machine) checkStores(j *job) {
	away := m.blocked(j)
	if away == nil {
		return
	}
	for _, id := range away {
		if m.shard(id) == nil {
			m.fail(j, fmt.Sprintf("store shard %s was forgotten, and values of the job lie on it: start it with its folder "+
				"and resume the job, or submit it anew", id))
			return
		}
	}
	if j.awaySince == 0 {
		j.awaySince = m.listening()
	}
	if out := m.listening() - j.awaySince; out >= m.limits.MaxOutage {
		m.fail(j, fmt.Sprintf("store shards %v have been away for %.0f s: start them again with their folders, "+
			"then resume the job", away, out.Seconds()))
	}
}

// away lists the shards of a job that are not up.
func (m *Machine) away(j *job) []string {
	var out []string
	for _, id := range j.Shards {
		if s := m.shard(id); s == nil || !s.up {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// copiesThere returns how many copies each value of a job has at least, and how many it should
// have.
func (m *Machine) copiesThere(j *job) (there, wanted uint32) {
	wanted = max(j.Replicas, 1)
	there = wanted
	for _, id := range j.Shards {
		s := m.shard(id)
		if (s == nil || !s.up || wanted > 1 && s.lastReport.Repairing) && there > 0 {
			there--
		}
	}
	return there, wanted
}
