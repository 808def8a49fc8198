package slurm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dagbridge/dagbridge/integration/golden"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
)

// common begins the part of a script that is the same in all cases, and shown in one of them.
const common = "\n# ---- What follows"

// TestTranslate walks the cases in testdata: out.sbatch is what a person would hand to sbatch, out.args and out.v00*.json
// what the ways in are handed, out.notices what the user is told.
func TestTranslate(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.json")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			site, s := readCase(t, in)
			job, faults := slurm.Translate(site, s)
			require.Empty(t, faults)

			text := job.Text()
			shown := text
			if !strings.HasSuffix(dir, "a minimal command") {
				shown, _, _ = strings.Cut(text, common)
			}
			golden.Equal(t, dir, "out.sbatch", shown)
			golden.Equal(t, dir, "out.args", strings.Join(job.Arguments(), "\n")+"\n")
			golden.Equal(t, dir, "out.notices", strings.Join(append(job.Notices, ""), "\n"))
			for name, text := range job.Files {
				golden.Equal(t, dir, "out."+name, text)
			}
			goldenREST(t, dir, "out.v0038.json", job, "v0.0.38")
			// the versions since differ only in what they cannot carry
			for _, version := range slurm.Versions[:len(slurm.Versions)-1] {
				goldenREST(t, dir, "out.v0045.json", job, version)
			}
		})
	}
}

// goldenREST compares what a version of slurmrestd is handed with a file.
func goldenREST(t *testing.T, dir, name string, job *slurm.Job, version string) {
	t.Helper()
	body, faults := job.REST(version)
	require.Empty(t, faults)
	where := body
	if version != "v0.0.38" {
		where = body["job"].(map[string]any)
	}
	require.Equal(t, job.Text(), where["script"])
	where["script"] = "(out.sbatch)"
	encoded, err := json.MarshalIndent(body, "", "  ")
	require.NoError(t, err)
	golden.Equal(t, dir, name, string(encoded)+"\n")
}

func readCase(t *testing.T, file string) (slurm.Site, translators.Submission) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var in struct {
		Site      slurm.Site
		Task      json.RawMessage
		Instances []translators.Instance
		Depends   translators.Dependencies
		Inputs    []translators.Input
		// Tasks that go in together.
		Tasks       []json.RawMessage
		MaxParallel int
		Exclude     []string
		Hold        bool
	}
	in.Site = slurm.Site{WorkDir: "/shared/dagbridge", User: "svc"}
	require.NoError(t, json.Unmarshal(text, &in))
	task := &dagbridgev1.Task{}
	require.NoError(t, protojson.Unmarshal(in.Task, task))
	s := submission(task)
	s.Instances, s.MaxParallel, s.Depends, s.Inputs, s.Hold = in.Instances, in.MaxParallel, in.Depends, in.Inputs, in.Hold
	s.ExcludeNodes = in.Exclude
	for i, text := range in.Tasks {
		own := &dagbridgev1.Task{}
		require.NoError(t, protojson.Unmarshal(text, own))
		s.Instances = append(s.Instances, translators.Instance{Position: i, JobID: fmt.Sprintf("j%d", i), Task: own})
	}
	return in.Site, s
}

// fields says which field of slurmrestd's description is which option of sbatch's, where the names differ.
var fields = map[string]string{
	"job-name": "name", "chdir": "current_working_directory", "output": "standard_output", "error": "standard_error",
	"ntasks": "tasks", "ntasks-per-node": "tasks_per_node", "mem": "memory_per_node", "time": "time_limit",
	"kill-on-invalid-dep": "kill_on_invalid_dependency", "constraint": "constraints", "mem-per-cpu": "memory_per_cpu",
	"tmp": "temporary_disk_per_node", "exclude": "exclude_nodes",
}

// TestTheDirectivesSayWhatTheDescriptionSays reads the #SBATCH lines and the arguments back and compares them with the
// description, option by option, none more and none less.
func TestTheDirectivesSayWhatTheDescriptionSays(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.json")
	require.NoError(t, err)
	for _, in := range cases {
		job, faults := slurm.Translate(readCase(t, in))
		require.Empty(t, faults)
		body, faults := job.REST("v0.0.38")
		require.Empty(t, faults)
		description := body["job"].(map[string]any)
		delete(description, "environment")
		require.Equal(t, []string{"--parsable", "--export=ALL", "--ignore-pbs"}, job.Arguments()[:3])
		arguments := job.Arguments()[3:]
		directives := job.Directives()
		require.Len(t, directives, len(description), in)
		require.Len(t, arguments, len(description), in)
		for i, directive := range directives {
			name, value, _ := strings.Cut(strings.TrimPrefix(unquote(directive), "#SBATCH --"), "=")
			require.Equal(t, arguments[i], strings.TrimSuffix("--"+name+"="+value, "="))
			field, ok := fields[name]
			if !ok {
				field = strings.ReplaceAll(name, "-", "_")
			}
			require.Contains(t, description, field, in)
			switch want := description[field].(type) {
			case bool:
				require.Equal(t, want, value != "no", name)
			case string:
				if value != "" { // else the option's own default, as slurmrestd must be told it
					require.Equal(t, want, value, name)
				}
			default:
				require.Equal(t, fmt.Sprint(want), strings.TrimSuffix(first(value, "100"), "M"), name)
			}
		}
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// unquote undoes the quoting of an #SBATCH line's value.
func unquote(line string) string {
	name, value, _ := strings.Cut(line, `="`)
	if value == "" {
		return line
	}
	return name + "=" + strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(strings.TrimSuffix(value, `"`))
}
