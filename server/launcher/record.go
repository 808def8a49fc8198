package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/kfp"
)

// States of a record.
const (
	succeeded = "succeeded"
	skipped   = "skipped"
)

// record is what a step has left.
type record struct {
	// Job that left it.
	Job        string                     `json:"job"`
	State      string                     `json:"state"`
	Parameters map[string]json.RawMessage `json:"parameters,omitempty"`
	Artifacts  map[string][]kfp.Artifact  `json:"artifacts,omitempty"`
	// Instances of a loop, if it has listed them.
	Instances []kfp.Instance `json:"instances,omitempty"`
}

// folderName is a name of any kind as that of a folder.
func folderName(name string) string {
	const longest = 200
	escaped := strings.ReplaceAll(url.PathEscape(name), "@", "%40") // by which indices begin
	if strings.Trim(escaped, ".") == "" {
		escaped = strings.ReplaceAll(escaped, ".", "%2E") + "%"
	}
	if len(escaped) > longest {
		sum := sha256.Sum256([]byte(name))
		escaped = escaped[:longest-40] + "%" + hex.EncodeToString(sum[:16])
	}
	return escaped
}

// place is the folder of a step's instance, below one of the run's.
func (l *launch) place(kind, task string, index []int32) string {
	parts := []string{l.run, kind}
	for _, part := range strings.Split(task, "/") {
		parts = append(parts, folderName(part))
	}
	numbers := make([]string, len(index))
	for i, n := range index {
		numbers[i] = strconv.Itoa(int(n))
	}
	return filepath.Join(append(parts, "@"+strings.Join(numbers, "."))...)
}

func (l *launch) recordFile(task string, index []int32) string {
	return filepath.Join(l.place("records", task, index), "record")
}

// read is what a step has left; nil when it has left nothing.
func (l *launch) read(task string, index []int32) (*record, error) {
	text, err := os.ReadFile(l.recordFile(task, index))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("what %s has left cannot be read: %w", task, err)
	}
	return r, nil
}

// write leaves a record, whole or not at all, and the parameters as the job's outputs.
func (l *launch) write(r *record) error {
	r.Job = l.env["DAGBRIDGE_JOB_ID"]
	text, err := kfp.JSON(r)
	if err != nil {
		return err
	}
	shown := r.Parameters
	if l.step.Listing != nil { // how many there are is what the gateway has to know
		shown = map[string]json.RawMessage{kfp.InstancesOutput: json.RawMessage(strconv.Itoa(len(r.Instances)))}
	}
	if err := l.tell(shown); err != nil {
		return err
	}
	name := l.recordFile(l.step.Task, l.index)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := writeSynced(name+".new", text); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func writeSynced(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// tell makes parameters the job's outputs, where people see them. What is too large for that is left out there.
func (l *launch) tell(parameters map[string]json.RawMessage) error {
	file := l.env["DAGBRIDGE_OUTPUT"]
	if len(parameters) == 0 || file == "" {
		return nil
	}
	text, err := kfp.JSON(parameters)
	if err != nil {
		return err
	}
	limit := outputLimit
	if less, err := strconv.Atoi(l.env[translators.OutputLimitVariable]); err == nil {
		limit = less
	}
	if len(text) > limit {
		fmt.Fprintf(l.stderr, "dagbridge: the output parameters are %d bytes, more than a job shows as its outputs; the steps after this one get them all the same\n", len(text))
		return nil
	}
	return os.WriteFile(file, text, 0o600)
}
