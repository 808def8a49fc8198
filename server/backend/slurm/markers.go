package slurm

import (
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// markers are what a job itself has left in its folder.
type markers struct {
	// started: the start marker is there; by the native job of this id.
	started bool
	startID string
	// end, when the exit marker is there.
	end *slurm.Ending
	// unwritten: the script had come to its end, and could not write the exit marker: the file system was full.
	unwritten bool
	// deleted: there is no folder. It is made before the job is submitted, so whoever has a native job had one, and without it
	// nothing tells whether the program was run.
	deleted bool
	// err: the folder could not be read, or is out of reach with all others.
	err error
}

// markerLimit is more than any marker has, in bytes.
const markerLimit = 64 << 10

func (b *Backend) markers(job *dagbridgev1.Job, token string, position int) markers {
	var m markers
	if dir := slurm.Dir(b.siteOf(job), job.GetId()); isMissing(dir) {
		m.deleted = true
		if home := b.home(job); isMissing(home) {
			m.err = errNotThere(home)
		}
		return m
	}
	text, err := b.readFile(job, slurm.StartMarker(b.siteOf(job), job.GetId(), token, position), markerLimit)
	if err != nil {
		return markers{err: err}
	}
	if m.started = text != nil; m.started {
		// "77_3 0", a line for each start
		id, _, _ := strings.Cut(string(text), " ")
		m.startID, _, _ = strings.Cut(id, "_")
	}
	text, err = b.readFile(job, slurm.ExitMarker(b.siteOf(job), job.GetId(), token, position), markerLimit)
	if err != nil {
		return markers{err: err}
	}
	if text == nil {
		m.unwritten = !isMissing(slurm.ExitMarker(b.siteOf(job), job.GetId(), token, position) + ".new")
		return m
	}
	end, err := slurm.ParseExitMarker(text)
	if err != nil {
		// it is written whole or not at all: this is none of the wrapper's, and proves nothing
		b.odd("an exit marker cannot be read", slurm.ExitMarker(b.siteOf(job), job.GetId(), token, position))
		return m
	}
	m.end = &end
	return m
}

// of says whether the exit marker was left by a native job, and not by another with the same token.
func (m markers) of(ref backend.NativeRef) bool {
	if m.end == nil {
		return false
	}
	id, _, _ := strings.Cut(m.end.NativeID, "_")
	return id == ref.ID
}

// observe makes an observation of what the exit marker says, where nobody else says anything.
func (m markers) observe(o *backend.Observation) {
	o.State, o.ExitCode, o.EndTime = dagbridgev1.Job_SUCCEEDED, &m.end.ExitCode, m.end.EndTime
	o.Message = "Slurm has forgotten the job; this is what its exit marker says"
	if m.end.ExitCode != 0 {
		o.State = dagbridgev1.Job_FAILED
		m.explain(o)
	}
}

// explain adds what the exit marker says to an observation of a failure.
func (m markers) explain(o *backend.Observation) {
	if o.ExitCode == nil && m.end.ExitCode != 0 {
		// v0.0.38 says of every program that accounting has that it returned 0
		o.ExitCode = &m.end.ExitCode
	}
	if m.end.Sentence != "" {
		o.Message = m.end.Sentence
	}
	if m.refusedOutputs() {
		o.Reason = reasonOutputsRefused
	}
}

// refusedOutputs: the program succeeded and its outputs are no good. A program that exits so by itself has no sentence.
func (m markers) refusedOutputs() bool {
	return m.end != nil && m.end.ExitCode == slurm.ExitOutputsRefused && m.end.Sentence != ""
}

// reasonOutputsRefused: what the program wrote to DAGBRIDGE_OUTPUT is no JSON object and no lines.
const reasonOutputsRefused = "OUTPUTS_REFUSED"
