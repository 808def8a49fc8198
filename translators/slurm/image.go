package slurm

import (
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// Where a site has no containers, folders stand in for images: the program runs on the node as any other, and finds those of the
// folder first.

// standIn is the folder for the task's image; "" when there is none.
func (t *translation) standIn() string {
	return t.site.Images[t.submission.Task.GetContainer().GetImage()]
}

// isContained says whether the program runs in a container.
func (t *translation) isContained() bool {
	return t.submission.Task.GetContainer() != nil && t.standIn() == ""
}

// environment is what the program finds beside the job's own variables, as words of the shell.
func (t *translation) environment(task *dagbridgev1.Task) []string {
	assignments := env(task.GetEnv())
	if translators.Launches(task) {
		assignments = append(assignments, translators.LauncherVariable+"="+t.site.Launcher, translators.PipelinesVariable+"="+t.site.Pipelines)
	}
	words := quoted(t.insideEnv(assignments))
	folder := t.standIn()
	if folder == "" {
		return words
	}
	if path, ok := task.GetEnv()["PATH"]; ok {
		return append(words, Quote("PATH="+folder+"/bin:"+path))
	}
	return append(words, Quote("PATH="+folder+"/bin:")+`"$PATH"`)
}
