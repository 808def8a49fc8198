package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dagbridge/dagbridge/translators/slurm"
)

// number is an integer in any shape that slurmrestd's versions give it: 5, "5", null, {"set": true, "infinite": false, "number": 5}.
type number struct {
	value int64
	set   bool
}

func (n *number) UnmarshalJSON(text []byte) error {
	*n = number{}
	switch {
	case bytes.Equal(text, []byte("null")):
		return nil
	case text[0] == '{':
		var shaped struct {
			Set      *bool
			Infinite bool
			Number   json.Number
		}
		if err := json.Unmarshal(text, &shaped); err != nil {
			return err
		}
		if shaped.Infinite || shaped.Set != nil && !*shaped.Set || shaped.Number == "" {
			return nil
		}
		text = []byte(shaped.Number)
	case text[0] == '"':
		text = bytes.Trim(text, `"`)
		if len(text) == 0 {
			return nil
		}
	}
	value, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		// not a whole number: priorities are floats in places
		float, ferr := strconv.ParseFloat(string(text), 64)
		if ferr != nil {
			return err
		}
		value = int64(float)
	}
	*n = number{value, true}
	return nil
}

// epoch is a time in seconds, zero when it is not set.
func (n number) epoch() time.Time {
	if !n.set || n.value <= 0 {
		return time.Time{}
	}
	return time.Unix(n.value, 0).UTC()
}

// words is a state: "RUNNING" or ["RUNNING", "COMPLETING"].
type words []string

func (w *words) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		var word string
		err := json.Unmarshal(text, &word)
		*w = words{word}
		return err
	}
	return json.Unmarshal(text, (*[]string)(w))
}

// status is how a program ended: the status of wait(2), or {"return_code": ..., "signal": ...} in two shapes.
type status struct{ exit, signal *int32 }

func (s *status) UnmarshalJSON(text []byte) error {
	*s = status{}
	if text[0] != '{' {
		var n number
		err := n.UnmarshalJSON(text)
		if err == nil && n.set {
			s.exit, s.signal = waitStatus(n.value)
		}
		return err
	}
	var shaped struct {
		Set        *bool  // of {"set", "number"}: still the status of wait(2)
		ReturnCode number `json:"return_code"`
		Signal     struct {
			SignalID number `json:"signal_id"`
			ID       number `json:"id"`
		}
	}
	if err := json.Unmarshal(text, &shaped); err != nil {
		return err
	}
	if shaped.Set != nil {
		var n number
		err := n.UnmarshalJSON(text)
		if err == nil && n.set {
			s.exit, s.signal = waitStatus(n.value)
		}
		return err
	}
	for _, n := range []number{shaped.Signal.SignalID, shaped.Signal.ID} {
		if n.set && n.value > 0 {
			signal := int32(n.value)
			exit := 128 + signal
			s.exit, s.signal = &exit, &signal
			return nil
		}
	}
	if shaped.ReturnCode.set {
		exit := int32(shaped.ReturnCode.value)
		s.exit = &exit
	}
	return nil
}

// controllerJob is the part of GET /jobs that is used.
type controllerJob struct {
	JobID           number `json:"job_id"`
	ArrayJobID      number `json:"array_job_id"`
	ArrayTaskID     number `json:"array_task_id"`
	ArrayTaskString string `json:"array_task_string"`
	State           words  `json:"job_state"`
	Reason          string `json:"state_reason"`
	Description     string `json:"state_description"`
	Exit            status `json:"exit_code"`
	Dependency      string `json:"dependency"`
	Priority        number `json:"priority"`
	Submit          number `json:"submit_time"`
	Start           number `json:"start_time"`
	End             number `json:"end_time"`
	Evaluated       number `json:"last_sched_evaluation"`
	Nodes           string `json:"nodes"`
	User            string `json:"user_name"`
	Comment         string `json:"comment"`
	Name            string `json:"name"`
}

func (j *controllerJob) record() record {
	r := record{
		words: j.State, reason: j.Reason, description: j.Description, held: j.Priority.set && j.Priority.value == 0,
		exit: j.Exit.exit, signal: j.Exit.signal, dependency: j.Dependency,
		submit: j.Submit.epoch(), start: j.Start.epoch(), end: j.End.epoch(),
		node: j.Nodes, user: j.User, comment: j.Comment, name: j.Name,
	}
	r.place(j.JobID, j.ArrayJobID, j.ArrayTaskID, j.ArrayTaskString)
	return r
}

// place sets what the record is about.
func (r *record) place(job, array, task number, tasks string) {
	r.own = strconv.FormatInt(job.value, 10)
	switch {
	case array.value == 0:
		r.id = strconv.FormatInt(job.value, 10)
	case tasks != "":
		// slurmrestd 22.05 cuts a list of more than 64 bytes short and ends it with dots
		id := strconv.FormatInt(array.value, 10)
		_, positions, _, err := slurm.ParseIDs(id + "_[" + tasks + "]")
		r.id, r.positions, r.rest = id, positions, err != nil
	case task.set:
		r.id, r.positions = strconv.FormatInt(array.value, 10), []int{int(task.value)}
	default:
		r.id, r.rest = strconv.FormatInt(array.value, 10), true
	}
}

// accountedJob is the part of GET /slurmdb/jobs that is used.
type accountedJob struct {
	JobID number `json:"job_id"`
	Array struct {
		JobID  number `json:"job_id"`
		TaskID number `json:"task_id"`
		Task   string `json:"task"`
	} `json:"array"`
	State struct {
		Current words  `json:"current"`
		Reason  string `json:"reason"`
	} `json:"state"`
	Exit status `json:"exit_code"`
	Time struct {
		Submission number `json:"submission"`
		Start      number `json:"start"`
		End        number `json:"end"`
	} `json:"time"`
	Nodes   string `json:"nodes"`
	User    string `json:"user"`
	Comment struct {
		Job string `json:"job"`
	} `json:"comment"`
	Name string `json:"name"`
	// Killer is who cancelled it, a name or a number; empty when nobody did.
	Killer json.RawMessage `json:"kill_request_user"`
}

func (j *accountedJob) record() record {
	killer := strings.Trim(string(j.Killer), `"`)
	if killer == "null" {
		killer = ""
	}
	r := record{
		killer: killer,
		words:  j.State.Current, reason: j.State.Reason, exit: j.Exit.exit, signal: j.Exit.signal,
		submit: j.Time.Submission.epoch(), start: j.Time.Start.epoch(), end: j.Time.End.epoch(),
		node: given(j.Nodes), user: j.User, comment: j.Comment.Job, name: j.Name,
	}
	r.place(j.JobID, j.Array.JobID, j.Array.TaskID, j.Array.Task)
	return r
}

// remarks are what an answer says beside what was asked for.
type remarks struct {
	Errors   []complaint `json:"errors"`
	Warnings []complaint `json:"warnings"`
}

// decodeJobs reads an answer with jobs one by one, so that the memory it takes is that of one.
func decodeJobs(body io.Reader, visit func(job json.RawMessage)) (remarks, error) {
	decoder := json.NewDecoder(body)
	var s remarks
	err := object(decoder, func(key string) error {
		switch key {
		case "jobs":
			return array(decoder, func() error {
				var job json.RawMessage
				err := decoder.Decode(&job)
				if err == nil {
					visit(job)
				}
				return err
			})
		case "errors":
			return decoder.Decode(&s.Errors)
		case "warnings":
			return decoder.Decode(&s.Warnings)
		default:
			return skip(decoder)
		}
	})
	return s, err
}

// object reads an object, whose values visit reads.
func object(decoder *json.Decoder, visit func(key string) error) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return fmt.Errorf("%v where an object was expected", token)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		if err := visit(key.(string)); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}

// array reads a list, whose elements visit reads; null is none.
func array(decoder *json.Decoder, visit func() error) error {
	token, err := decoder.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return fmt.Errorf("%v where a list was expected", token)
	}
	for decoder.More() {
		if err := visit(); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}

func skip(decoder *json.Decoder) error {
	var skipped json.RawMessage
	return decoder.Decode(&skipped)
}
