package store

import (
	"fmt"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Job is the job of an id, or ErrNotFound.
func (s *Store) Job(id string) (*dagbridgev1.Job, error) {
	var job *dagbridgev1.Job
	err := s.View(func(tx *Tx) error {
		rec := tx.Record(id)
		if rec == nil || isCarrier(rec) {
			return fmt.Errorf("%w: %q", ErrNotFound, id)
		}
		job = rec.GetJob()
		return nil
	})
	return job, err
}

// Lookup is the newest job of a task, of one of its tries when try is not 0; or ErrNotFound.
func (s *Store) Lookup(key *dagbridgev1.TaskKey, try int32) (*dagbridgev1.Job, error) {
	var job *dagbridgev1.Job
	err := s.View(func(tx *Tx) error {
		id := ""
		if try == 0 {
			id = tx.Newest(key)
		} else {
			id = tx.NewestTry(key, try)
		}
		if job = tx.Record(id).GetJob(); job == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, describe(key, try))
		}
		return nil
	})
	return job, err
}

// describe names a task in a sentence.
func describe(key *dagbridgev1.TaskKey, try int32) string {
	text := fmt.Sprintf("task %q of %s run %q of workflow %q in deployment %q", key.GetTask(), key.GetOrchestrator(), key.GetRun(), key.GetWorkflow(), key.GetDeployment())
	if len(key.GetMapIndex()) > 0 {
		text += fmt.Sprintf(", map index %v", key.GetMapIndex())
	}
	if try != 0 {
		text += fmt.Sprintf(", try %d", try)
	}
	return text
}
