package backendtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

// array is a submission of some positions of a task with one item for each of args.
func (s *suite) array(t *testing.T, task *dagbridgev1.Task, args []string, positions ...int) translators.Submission {
	task.Array = &dagbridgev1.Array{}
	for i, arg := range args {
		task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{Env: map[string]string{"ITEM": fmt.Sprint(i)}, Argv: []string{arg}})
	}
	sub := s.submission(t, task)
	for _, position := range positions {
		sub.Instances = append(sub.Instances, translators.Instance{Position: position, JobID: newID(t), MapIndex: []int32{int32(position)}, Item: task.Array.Items[position]})
	}
	return sub
}

func refusedArray(t *testing.T, s *suite) {
	_, faults := s.Backend.Render(s.array(t, command("true"), []string{"a", "b"}, 0, 1))
	require.NotEmpty(t, faults)
}

func arrayInstances(t *testing.T, s *suite) {
	task := command("sh", "-c", `echo "item $ITEM $1 $DAGBRIDGE_MAP_INDEX $DAGBRIDGE_JOB_ID"; printf '{"i": %s}' "$ITEM" > "$DAGBRIDGE_OUTPUT"; exit $((ITEM % 2 * 3))`, "sh")
	args := []string{"it's", "$x", "", "é\n"}
	a := s.submit(t, s.array(t, task, args, 0, 1, 2, 3))
	for i, instance := range a.Instances {
		state, output := dagbridgev1.Job_SUCCEEDED, fmt.Sprintf(`{"i": %d}`, i)
		if i%2 == 1 {
			state, output = dagbridgev1.Job_FAILED, ""
		}
		o := a.endAt(i, state)
		require.NotNil(t, o.ExitCode)
		require.EqualValues(t, i%2*3, *o.ExitCode)
		require.Equal(t, fmt.Sprintf("item %d %s %d %s\n", i, args[i], i, instance.JobID), a.stdout(i))
		text, err := a.outputs(i)
		require.NoError(t, err)
		if output == "" {
			require.Empty(t, text)
		} else {
			require.JSONEq(t, output, text)
		}
	}
}

func arrayCancelOne(t *testing.T, s *suite) {
	task, dir := s.sh(t, `until [ -e "$0/go" ]; do sleep 0.1; done`)
	a := s.submit(t, s.array(t, task, []string{"", "", ""}, 0, 1, 2))
	for i := range 3 {
		a.awaitAt(i, "RUNNING", func(o backend.Observation) bool { return o.State == dagbridgev1.Job_RUNNING })
	}
	errs := s.Backend.Cancel(s.context(t), []backend.Known{{Ref: a.ref, Job: a.Job, Positions: []int{1}}})
	require.Equal(t, []error{nil}, errs)
	a.endAt(1, dagbridgev1.Job_CANCELLED)
	touch(t, dir, "go")
	a.endAt(0, dagbridgev1.Job_SUCCEEDED)
	a.endAt(2, dagbridgev1.Job_SUCCEEDED)
}

// arrayPositions is what a retry of failed instances submits.
func arrayPositions(t *testing.T, s *suite) {
	task, dir := s.sh(t, `touch "$0/ran-$ITEM"`)
	a := s.submit(t, s.array(t, task, []string{"", "", "", "", ""}, 1, 4))
	a.endAt(1, dagbridgev1.Job_SUCCEEDED)
	a.endAt(4, dagbridgev1.Job_SUCCEEDED)
	for i := range 5 {
		err := exists(dir, fmt.Sprintf("ran-%d", i))()
		require.Equal(t, i == 1 || i == 4, err == nil, "position %d", i)
	}
}
