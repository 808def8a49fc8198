package store

import (
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// longScript is the length in bytes above which a script is kept apart from its task, once for all jobs that run it.
const longScript = 1 << 10

// PutTask keeps the normalised task of a job.
func (tx *Tx) PutTask(jobID string, task *dagbridgev1.Task) {
	id, ok := parseID(jobID)
	if !ok {
		panic(fmt.Sprintf("store: the job id %q is not a UUID", jobID))
	}
	rec := &storev1.TaskRecord{Task: task}
	text := task.GetScript().GetText()
	if len(text) > longScript {
		digest := sha256.Sum256([]byte(text))
		rec.Task = withScript(task, "")
		rec.ScriptDigest = digest[:]
	}
	old := &storev1.TaskRecord{}
	if tx.read(tasks, id, old) && string(old.GetScriptDigest()) != string(rec.GetScriptDigest()) {
		tx.dropBody(old.GetScriptDigest(), id)
	}
	if digest := rec.GetScriptDigest(); digest != nil {
		if tx.get(bodies, digest) == nil {
			tx.put(bodies, digest, []byte(text))
		}
		tx.put(lists, list(listBody, digest, id), nil)
	}
	tx.write(tasks, id, rec)
}

// Task is the task of a job, script included; nil when there is none. An array's instances have none of their own.
func (tx *Tx) Task(jobID string) *dagbridgev1.Task {
	id, ok := parseID(jobID)
	rec := &storev1.TaskRecord{}
	if !ok || !tx.read(tasks, id, rec) {
		return nil
	}
	if digest := rec.GetScriptDigest(); digest != nil {
		rec.Task.Script.Text = string(tx.get(bodies, digest))
	}
	return rec.GetTask()
}

func (tx *Tx) removeTask(id []byte) {
	rec := &storev1.TaskRecord{}
	if tx.read(tasks, id, rec) {
		tx.dropBody(rec.GetScriptDigest(), id)
		tx.delete(tasks, id)
	}
}

// dropBody ends a job's use of a script, and deletes the script with its last use.
func (tx *Tx) dropBody(digest, id []byte) {
	if len(digest) == 0 {
		return
	}
	tx.delete(lists, list(listBody, digest, id))
	if !tx.any(lists, list(listBody, digest)) {
		tx.delete(bodies, digest)
	}
}

// withScript is the task with another script text. It shares everything else, so that a long text is not copied.
func withScript(task *dagbridgev1.Task, text string) *dagbridgev1.Task {
	shallow := &dagbridgev1.Task{}
	dst, src := shallow.ProtoReflect(), task.ProtoReflect()
	src.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		dst.Set(fd, v)
		return true
	})
	shallow.Script = &dagbridgev1.Script{Text: text}
	return shallow
}
