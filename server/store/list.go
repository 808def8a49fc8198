package store

import (
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// List answers with the jobs that a filter chooses, newest first (an array's instances: the highest position first), and the
// token of the next page, "" on the last one. resume is where a watch goes on without a gap after this page.
//
// It reads the lists that the filter names and keeps what is in all of them, so its work is that of the shortest. What has no
// list (cluster, deployment or orchestrator alone; which of the live states) is looked for among what the lists yield; a
// page that has looked at too many for too little ends early, and may be empty while there is a next one. So does a page that
// would weigh too much.
func (s *Store) List(f *dagbridgev1.JobFilter, pageSize int, pageToken string) (found []*dagbridgev1.Job, next, resume string, err error) {
	p := page{size: pageSize, token: pageToken, of: f}
	err = s.View(func(tx *Tx) error {
		resume = s.ResumeToken(tx.bucket(changes).Sequence())
		sets, width := tx.jobSets(f)
		next, err = p.read(sets, width, func(id string) int {
			job := tx.Record(id).GetJob()
			if !Match(f, job) {
				return 0
			}
			found = append(found, job)
			return proto.Size(job)
		})
		return err
	})
	return found, next, resume, err
}

// ListRuns answers with the runs that a request chooses, newest first, and the token of the next page, "" on the last one.
// Its state is not looked at: the states of runs are computed, by the engine.
func (s *Store) ListRuns(req *dagbridgev1.ListRunsRequest) (found []*dagbridgev1.Run, next string, err error) {
	of := proto.CloneOf(req)
	of.PageSize, of.PageToken = 0, ""
	p := page{size: int(req.GetPageSize()), token: req.GetPageToken(), of: of}
	err = s.View(func(tx *Tx) error {
		next, err = p.read(tx.runSets(req), idLen, func(id string) int {
			run := tx.Run(id)
			if !matchRun(req, run) {
				return 0
			}
			found = append(found, run)
			return proto.Size(run)
		})
		return err
	})
	return found, next, err
}

// jobSets are the sets that hold every job the filter chooses, and the length of their positions.
func (tx *Tx) jobSets(f *dagbridgev1.JobFilter) ([]source, int) {
	if f.GetParent() != "" {
		parent, ok := parseID(f.GetParent())
		if !ok {
			return []source{union{}}, idLen
		}
		return []source{tx.list(list(listChildren, parent))}, 4 + idLen
	}
	if f.GetNativeId() != "" {
		return []source{tx.nativeSet(f.GetNativeId(), f.GetCluster())}, idLen
	}
	var sets []source
	switch {
	case f.GetWorkflow() != "" && f.GetRun() != "" && f.GetTask() != "":
		sets = append(sets, tx.taskSet(f))
	case f.GetWorkflow() != "" && f.GetRun() != "":
		sets = append(sets, tx.runSet(f))
	case f.GetWorkflow() != "":
		sets = append(sets, tx.list(listOf(listWorkflow, f.GetWorkflow())))
	}
	for _, label := range f.GetLabel() {
		sets = append(sets, tx.list(listOf(listLabel, label)))
	}
	if len(f.GetState()) > 0 || len(sets) == 0 {
		sets = append(sets, tx.stateSet(f.GetState()))
	}
	return sets, idLen
}

func (tx *Tx) list(prefix []byte) source {
	return &postings{c: tx.bucket(lists).Cursor(), prefix: prefix}
}

// stateSet: the jobs in any of some states; those in any live state when one is asked for. Of no states: all jobs.
func (tx *Tx) stateSet(states []dagbridgev1.Job_State) source {
	if len(states) == 0 {
		for state := range dagbridgev1.Job_State_name {
			states = append(states, dagbridgev1.Job_State(state))
		}
	}
	var u union
	alive := false
	for _, state := range states {
		if ended(state) {
			u = append(u, tx.list(list(listEnded, []byte{byte(state)})))
		} else if !alive {
			alive = true
			u = append(u, tx.list([]byte{listLive}))
		}
	}
	return u
}

// taskSet: the jobs of a task of a run, of every try and map index.
func (tx *Tx) taskSet(f *dagbridgev1.JobFilter) source {
	var key []byte
	for _, part := range []string{f.GetWorkflow(), f.GetRun(), f.GetTask(), f.GetDeployment(), f.GetOrchestrator()} {
		if part == "" {
			break
		}
		key = appendPart(key, part)
	}
	var found [][]byte
	tx.scan(names, key, func(_, id []byte) bool {
		if len(id) == idLen {
			found = append(found, id)
		}
		return true
	})
	return newIDs(found)
}

// runSet: the jobs of the runs of that name.
func (tx *Tx) runSet(f *dagbridgev1.JobFilter) source {
	var u union
	tx.scan(runnames, appendPart(appendPart(nil, f.GetWorkflow()), f.GetRun()), func(_, id []byte) bool {
		u = append(u, tx.list(list(listRunJobs, id)))
		return true
	})
	return u
}

// nativeSet: the jobs that had a native id, or were elements of the array of that id.
func (tx *Tx) nativeSet(nativeID, cluster string) source {
	whole, elements := appendPart(nil, nativeID), appendPart(nil, nativeID+"_")
	if cluster != "" {
		whole = appendPart(whole, cluster)
	}
	var found [][]byte
	for _, prefix := range [][]byte{whole, elements[:len(elements)-1]} {
		tx.scan(natives, prefix, func(key, _ []byte) bool {
			found = append(found, key[len(key)-4-idLen:len(key)-4])
			return true
		})
	}
	return newIDs(found)
}

// runSets are the sets that hold every run the request chooses.
func (tx *Tx) runSets(req *dagbridgev1.ListRunsRequest) []source {
	switch {
	case req.GetWorkflow() == "":
		return []source{&postings{c: tx.bucket(runs).Cursor()}}
	case req.GetRun() == "":
		return []source{tx.list(listOf(listWorkflowRuns, req.GetWorkflow()))}
	}
	var found [][]byte
	tx.scan(runnames, appendPart(appendPart(nil, req.GetWorkflow()), req.GetRun()), func(_, id []byte) bool {
		found = append(found, id)
		return true
	})
	return []source{newIDs(found)}
}
