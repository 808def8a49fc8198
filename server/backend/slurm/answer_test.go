package slurm

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/server/backend"
)

var errExit = errors.New("exit status 1")

func TestWhatSbatchPrintsIsClassified(t *testing.T) {
	t.Parallel()
	const policy = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n"
	for name, c := range map[string]struct {
		stdout, stderr string
		err            error
		want           backend.Outcome
		id             string
	}{
		"an id":                                    {"88\n", "", nil, backend.Submitted, "88"},
		"an id and its cluster":                    {"88;testbed\n", "", nil, backend.Submitted, "88"},
		"chatter around the id":                    {"Project quota 93 percent used\nSubmitted batch job 88\n", "sbatch: note: account set to default\nsbatch: warning: can't honor --ntasks-per-node 4\n", nil, backend.Submitted, "88"},
		"a number inside chatter is no id":         {"used 93\nin 12 jobs\n", "", nil, backend.Unknown, ""},
		"two ids":                                  {"88\n89\n", "", nil, backend.Unknown, ""},
		"success and no id":                        {"", "", nil, backend.Unknown, ""},
		"id 0":                                     {"0\n", "", nil, backend.Unknown, ""},
		"an id and a failure":                      {"88\n", "sbatch: error: something\n", errExit, backend.Unknown, ""},
		"no such partition":                        {"", "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n", errExit, backend.Refused, ""},
		"a time limit beyond the site's":           {"", "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)\n", errExit, backend.Refused, ""},
		"a limit on how many":                      {"", "sbatch: error: AssocMaxSubmitJobLimit\n" + policy, errExit, backend.Busy, ""},
		"a QOS limit on how many":                  {"", "sbatch: error: QOSMaxSubmitJobPerUserLimit\n" + policy, errExit, backend.Busy, ""},
		"a limit on how large":                     {"", "sbatch: error: QOSMaxCpuPerJobLimit\n" + policy, errExit, backend.Refused, ""},
		"the queue is full":                        {"", "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\nsbatch: error: Batch job submission failed: Resource temporarily unavailable\n", errExit, backend.Busy, ""},
		"too many calls":                           {"", "sbatch: error: Batch job submission failed: Rate limit exceeded, please retry momentarily\n", errExit, backend.Limited, ""},
		"the queue of 26.05 is full":               {"", "sbatch: error: Slurm job queue full, sleeping and retrying\nsbatch: error: Batch job submission failed: MaxJobCount limit reached\n", errExit, backend.Busy, ""},
		"the controller is down":                   {"", "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n", errExit, backend.Unknown, ""},
		"the answer did not come":                  {"", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", errExit, backend.Unknown, ""},
		"killed by our deadline, or by a stranger": {"", "", errors.New("signal: killed"), backend.Unknown, ""},
		"not installed":                            {"", "", errNotStarted{errors.New("sbatch does not run")}, backend.NotSent, ""},
	} {
		o := output{stdout: c.stdout, stderr: c.stderr}
		err := c.err
		if errors.Is(err, errExit) && len(o.sentences()) > 0 {
			err = errors.New(o.sentences()[0])
			for _, s := range o.sentences()[1:] {
				err = errors.New(err.Error() + "; " + s)
			}
		}
		a := classifySbatch(o, err)
		require.Equal(t, c.want, a.outcome, "%s: %s", name, a.message)
		require.Equal(t, c.id, a.id, name)
		if c.want != backend.Submitted {
			require.NotEmpty(t, a.message, name)
		} else {
			require.Equal(t, o.sentences(), a.notes, name)
		}
	}
}

// What Slurm's library says of its connection tells nothing of whether slurmctld has the job (slurm_errno.c of 22.05 to 26.05).
func TestAnSbatchThatLosesItsConnectionMayHaveBeenHeard(t *testing.T) {
	t.Parallel()
	for _, sentence := range []string{
		"Unspecified error", "Unexpected message received", "Communication connection failure", "Message send failure",
		"Message receive failure", "Communication shutdown failure", "I/O stream version number error", "Protocol authentication error",
		"Insane message length", "Unexpected missing socket error", "Unable to contact slurm controller (send failure)",
		"Socket timed out on send/recv operation", "Zero Bytes were transmitted or received", "Transport endpoint is not connected",
		"Connection reset by peer", "Connection timed out", "Broken pipe", "No route to host", "Network is unreachable", "Host is down",
	} {
		require.Equal(t, backend.Unknown, classifySbatch(output{}, errors.New("Batch job submission failed: "+sentence)).outcome, sentence)
		o := output{stderr: "sbatch: error: Batch job submission failed: " + sentence + "\n"}
		require.Equal(t, backend.Unknown, classifySbatch(o, errors.New(o.sentences()[0])).outcome, sentence)
	}
}

func TestWhatSlurmrestdAnswersIsClassified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		want   backend.Outcome
		id     string
	}{
		"an id":                         {`{"errors":[],"job_id":114,"step_id":"BATCH","job_submit_user_msg":""}`, backend.Submitted, "114"},
		"an id as an object":            {`{"job_id":{"set":true,"infinite":false,"number":114}}`, backend.Submitted, "114"},
		"held is no failure":            {`{"errors":[{"error_code":2042,"error":"Job is in held state, pending scheduler release"}],"job_id":22}`, backend.Submitted, "22"},
		"id 0 and an unknown number":    {`{"job_id":0,"errors":[{"error_number":9999,"description":"Invalid qos specification"}]}`, backend.Refused, ""},
		"no such partition":             {`{"errors":[{"error_code":2000,"error":"Invalid partition name specified"}]}`, backend.Refused, ""},
		"a bad dependency":              {`{"errors":[{"error_code":2038,"error":"Job dependency problem"}]}`, backend.Refused, ""},
		"an unknown field":              {`{"errors":[{"error_code":9001,"error":"Unknown key"}]}`, backend.Refused, ""},
		"the queue is full":             {`{"errors":[{"error_code":11,"error":"Resource temporarily unavailable"}]}`, backend.Busy, ""},
		"too many calls":                {`{"errors":[{"error_code":1804,"error":"Rate limit exceeded, please retry momentarily"}]}`, backend.Limited, ""},
		"a limit":                       {`{"errors":[{"error_code":2050,"error":"Job violates accounting/QOS policy"}]}`, backend.Busy, ""},
		"the controller is down":        {`{"errors":[{"error_code":1800,"error":"Unable to contact slurm controller (connect failure)"}]}`, backend.Unknown, ""},
		"the controller died meanwhile": {`{"errors":[{"error_code":104,"error":"Connection reset by peer"}]}`, backend.Unknown, ""},
		"nobody knows":                  {`{"errors":[{"error_number":-1,"error":"Unspecified error"}]}`, backend.Unknown, ""},
		"an empty answer":               {`{}`, backend.Unknown, ""},
	} {
		var s ordered
		require.NoError(t, json.Unmarshal([]byte(c.answer), &s), name)
		a := s.answer()
		require.Equal(t, c.want, a.outcome, "%s: %s", name, a.message)
		require.Equal(t, c.id, a.id, name)
		if c.want != backend.Submitted {
			require.NotEmpty(t, a.message, name)
		}
	}
}

func TestComplaintsGoToTheJobTheyAreAbout(t *testing.T) {
	t.Parallel()
	ids := []string{"15", "15_4", "16"}
	errs := make([]error, 3)
	complaints(output{stderr: "scancel: error: Kill job error on job id 15_4: Access/permission denied\nscancel: error: Kill job error on job id 16: Invalid job id specified\n"}, errExit, ids, errs)
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "permission denied")
	require.NoError(t, errs[2], "that it is not there any more is no error")

	for _, last := range []string{"slurm_suspend error: No error", "slurm_suspend error", "slurm_suspend error:Job has already finished"} {
		errs = make([]error, 3)
		complaints(output{stderr: "Invalid job id specified for job 15\nJob has already finished for job 16\n" + last + "\n"}, errExit, ids, errs)
		require.Equal(t, make([]error, 3), errs, last)
	}

	errs = make([]error, 3)
	complaints(output{stderr: "scancel: error: Unable to contact slurm controller\n"}, errExit, ids, errs)
	for _, err := range errs {
		require.ErrorContains(t, err, "Unable to contact")
	}
}
