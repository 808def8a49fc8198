// Package translators is the narrow waist between front ends and back ends. A front end (airflow, kfp) reads a DAG in its
// orchestrator's form and produces a dagbridgev1.Workflow; a back end's translator (slurm, kubernetes) takes a Submission
// and produces native text. They meet nowhere else.
//
// This package and all below it are pure: no context, network, files, clock, randomness or logging. The same input gives
// the same bytes, so that a golden file can hold them. They import proto, each other from the leaves up, and nothing of
// the server's.
package translators

import (
	"fmt"
	"strings"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Submission is one native job to be made: one attempt of a job, or of a whole array.
type Submission struct {
	// Token is what the native job is recognised by: "<job id>.<attempt number>".
	Token string
	// Job is the job the attempt belongs to; of an array, the one that stands for all of it. Its id, key, tryNumber and owner
	// are set.
	Job *dagbridgev1.Job
	// Task is what to run, normalised by graph.Normalize; script text included. Where the instances have tasks of their own it
	// is one of these, and says what all have in common: all but the program, its environment and the key.
	Task *dagbridgev1.Task
	// Instances are the array's instances that this attempt runs, in ascending position; nil for a single task.
	Instances []Instance
	// MaxParallel is how many of them may run at once; 0: any number.
	MaxParallel int
	// Depends is kept by the scheduler itself. The zero value: nothing to wait for.
	Depends Dependencies
	// Guard are upstreams that must have left their success marker when the job starts. A scheduler that has lost a job, or
	// purged it, may take a dependency on it for satisfied; the job then ends as PREMATURE before its program starts.
	Guard []InputJob
	// Inputs are the upstream tasks' outputs, by task id in ascending order.
	Inputs []Input
	// ExcludeNodes are to be left out: an earlier attempt failed there by their doing.
	ExcludeNodes []string
	// Hold: the scheduler takes it but must not start it before a Change releases it.
	Hold bool
}

// Variables of a pipeline's steps, on clusters that bring this program into jobs.
const (
	// LauncherVariable is where the step's script finds it.
	LauncherVariable = "DAGBRIDGE_LAUNCHER"
	// OutputLimitVariable is how many bytes of outputs a job may leave there, where they are fewer than elsewhere.
	OutputLimitVariable = "DAGBRIDGE_OUTPUT_LIMIT"
	// PipelinesVariable is the folder that the jobs of pipelines share.
	PipelinesVariable = "DAGBRIDGE_PIPELINES"
)

// Launches says whether a task's script starts this program.
func Launches(t *dagbridgev1.Task) bool {
	return strings.HasPrefix(t.GetScript().GetText(), "#!/bin/sh\nexec \"$"+LauncherVariable+"\" ")
}

// Instance is one element of a native array.
type Instance struct {
	// Position is the native array index.
	Position int
	// JobID is the id of the instance's own job.
	JobID string
	// MapIndex of the instance's own job.
	MapIndex []int32
	// Item is what an array's instance adds to the task.
	Item *dagbridgev1.Array_Item
	// Task is the instance's own, where tasks with different programs go in together; nil otherwise.
	Task *dagbridgev1.Task
}

// DependencyType is Slurm's word; other schedulers have none of them.
type DependencyType string

// The dependency types that a native edge may have.
const (
	After      DependencyType = "after"
	AfterOK    DependencyType = "afterok"
	AfterNotOK DependencyType = "afternotok"
	AfterAny   DependencyType = "afterany"
	AfterCorr  DependencyType = "aftercorr"
	// Singleton waits for no job in particular: no other one of this name and user may run.
	Singleton DependencyType = "singleton"
)

// Dependency is one edge that the scheduler keeps.
type Dependency struct {
	Type DependencyType
	// NativeID of the upstream's current attempt ("1234", "1234_7"); empty of Singleton.
	NativeID string
	// Delay after the upstream's start, with After only; whole minutes.
	Delay time.Duration
}

// Dependencies is a whole dependency expression: all of the terms, or any one of them.
type Dependencies struct {
	Any   bool
	Terms []Dependency
}

// Input is what one upstream task leaves to the program, a member of the JSON object in DAGBRIDGE_INPUTS.
type Input struct {
	// Task is the upstream's task id, the member's name.
	Task string
	// JSON is the member's value, when it is known at submission: an object of outputs; of a mapped upstream a list of such.
	JSON string
	// Jobs, when JSON is empty: the upstream ends only later, natively before this one. Their output files are read when the
	// program starts; one that left none counts as {}.
	Jobs []InputJob
	// Mapped: the member is a list with one element for each of Jobs, else Jobs has one element and the member is its object.
	Mapped bool
}

// InputJob says where an upstream's outputs will be found.
type InputJob struct {
	// JobID is the upstream's; of an element of a native array that of the record which is submitted for all of it.
	JobID string
	// Position in the array; -1 for a single task.
	Position int
}

// Rendering is a Submission in a scheduler's own words.
type Rendering struct {
	// Text is what a person would hand to the scheduler's own tool.
	Text string
	// Notices are sentences on what was changed or means nothing here.
	Notices []string
}

// Fault is one thing that is wrong with an input.
type Fault struct {
	// Field is the path to the faulty field in the request's JSON form: "tasks[2].resources.memory".
	Field string
	// Description is a sentence: what is wrong and what to do.
	Description string
}

// Faults is all that is wrong with an input. It is an error when it is not empty.
type Faults []Fault

// Error lists all faults, one a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fmt.Sprintf("%s: %s", fault.Field, fault.Description)
	}
	return strings.Join(lines, "\n")
}

// OrNil is the faults as an error, nil when there are none.
func (f Faults) OrNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// MaxFaults is how many faults are kept: nobody reads more, and an input can have millions.
const MaxFaults = 10_000

// Add appends a fault.
func (f *Faults) Add(field, format string, args ...any) {
	if len(*f) >= MaxFaults {
		return
	}
	*f = append(*f, Fault{Field: field, Description: fmt.Sprintf(format, args...)})
}
