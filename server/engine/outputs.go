package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// parseOutputs takes a JSON object apart, each value byte for byte. What a back end hands over is normalised already; what
// is refused all the same is told in a sentence.
func (e *Engine) parseOutputs(raw []byte) (map[string]*dagbridgev1.Json, string) {
	if len(raw) == 0 {
		return nil, ""
	}
	if len(raw) > e.outputLimit {
		return nil, fmt.Sprintf("the outputs are %d bytes, and a job may leave %d; put large results in a file and its path in the outputs", len(raw), e.outputLimit)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, "the outputs are no JSON object: " + err.Error()
	}
	outputs := make(map[string]*dagbridgev1.Json, len(members))
	for name, value := range members {
		outputs[name] = &dagbridgev1.Json{Text: string(value)}
	}
	return outputs, ""
}

// outputsText is a job's outputs as one JSON object, names in order.
func outputsText(outputs map[string]*dagbridgev1.Json) string {
	names := make([]string, 0, len(outputs))
	for name := range outputs {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		quoted, _ := json.Marshal(name) // a string always marshals
		b.Write(quoted)
		b.WriteByte(':')
		b.WriteString(outputs[name].GetText())
	}
	b.WriteByte('}')
	return b.String()
}

// holdsWord: a JSON value is the word, or a list that has it. Bytes that are no JSON hold nothing.
func holdsWord(text, word string) bool {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	var value any
	if dec.Decode(&value) != nil {
		return false
	}
	switch v := value.(type) {
	case string:
		return v == word
	case []any:
		return slices.Contains(v, any(word))
	default:
		return false
	}
}

// inputs are what a node's upstreams leave to it: their outputs where they have ended, else where these will be found.
func (e *Engine) inputs(ups []upstream) ([]translators.Input, error) {
	var inputs []translators.Input
	for _, u := range ups {
		if u.id == "" {
			continue
		}
		in, err := e.input(u)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	slices.SortStableFunc(inputs, func(a, b translators.Input) int { return strings.Compare(a.Task, b.Task) })
	// Several edges may lead to one task; its outputs are one member.
	return slices.CompactFunc(inputs, func(a, b translators.Input) bool { return a.Task == b.Task }), nil
}

func (e *Engine) input(u upstream) (translators.Input, error) {
	in := translators.Input{Task: u.task}
	rec, err := e.record(u.id)
	if err != nil {
		return in, err
	}
	job := rec.GetJob()
	kids, err := e.kids(job)
	if err != nil {
		return in, err
	}
	in.Mapped = len(kids) > 0
	if graph.IsTerminal(job.GetState()) {
		if !in.Mapped {
			in.JSON = outputsText(job.GetOutputs())
			return in, nil
		}
		texts := make([]string, len(kids))
		for i, kid := range kids {
			texts[i] = outputsText(kid.GetJob().GetOutputs())
		}
		in.JSON = "[" + strings.Join(texts, ",") + "]"
		return in, nil
	}
	if !in.Mapped {
		kids = []*storev1.JobRecord{rec}
	}
	for _, kid := range kids {
		in.Jobs = append(in.Jobs, inputJob(kid))
	}
	return in, nil
}

// inputJob is where a job's outputs, and its success marker, will be found.
func inputJob(rec *storev1.JobRecord) translators.InputJob {
	id, element := inArray(rec)
	return translators.InputJob{JobID: id, Position: element}
}

// record is a job's record as it is, from memory where it is kept.
func (e *Engine) record(id string) (*storev1.JobRecord, error) {
	if rec := e.mem.record(id); rec != nil {
		return rec, nil
	}
	var rec *storev1.JobRecord
	err := e.store.View(func(tx *store.Tx) error {
		if rec = tx.Record(id); rec == nil || isCarrier(rec) {
			return fmt.Errorf("%w: %q", store.ErrNotFound, id)
		}
		return nil
	})
	return rec, err
}

// kids are an array's instances in order; nil of any other job.
func (e *Engine) kids(job *dagbridgev1.Job) ([]*storev1.JobRecord, error) {
	if len(job.GetCounts()) == 0 {
		return nil, nil
	}
	var kids []*storev1.JobRecord
	err := e.store.View(func(tx *store.Tx) error {
		tx.Children(job.GetId(), func(id string) bool {
			kids = append(kids, tx.Record(id))
			return true
		})
		return nil
	})
	return kids, err
}

// PutOutputs stages outputs of a job that has not ended; they are visible once it has.
func (e *Engine) PutOutputs(ctx context.Context, id string, outputs map[string]*dagbridgev1.Json) (*dagbridgev1.Job, error) {
	for name, value := range outputs {
		if !json.Valid([]byte(value.GetText())) {
			return nil, errorf(FailedPrecondition, "output %q is not JSON: send one JSON value", name)
		}
	}
	err := e.update(ctx, func(t *txn) error {
		rec := t.rec(id)
		if rec == nil {
			return errorf(NotFound, "there is no job %s", id)
		}
		if graph.IsTerminal(rec.GetJob().GetState()) {
			return errorf(FailedPrecondition, "job %s has ended; outputs are put while it runs", id)
		}
		staged := maps.Clone(rec.GetStaged())
		if staged == nil {
			staged = map[string]*dagbridgev1.Json{}
		}
		maps.Copy(staged, outputs)
		if size := len(outputsText(staged)); size > e.outputLimit {
			return errorf(ResourceExhausted, "the outputs would be %d bytes, and a job may leave %d; put large results in a file and its path in the outputs", size, e.outputLimit)
		}
		t.change(id, func(rec *storev1.JobRecord) { rec.Staged = staged })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.store.Job(id)
}
