package slurm_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAJobIsRecognisedByItsCommentOrItsName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := &dagbridgev1.TaskKey{
			Orchestrator: rapid.StringN(0, -1, 1024).Draw(t, "orchestrator"), Workflow: "w", Run: rapid.StringN(0, -1, 1024).Draw(t, "run"),
			Task: rapid.StringN(0, -1, 1024).Draw(t, "task"),
		}
		name, comment := slurm.Name(key.GetTask(), token), slurm.Comment(key, token)
		require.LessOrEqual(t, len(name), 200)
		require.LessOrEqual(t, len(comment), 1024)
		require.True(t, utf8.ValidString(comment))
		require.NotContains(t, name+comment, "\n")
		require.True(t, strings.HasSuffix(name, "."+token))
		for _, c := range [][2]string{{comment, name}, {comment, "renamed"}, {"", name}} {
			got, ok := slurm.TokenOf(c[0], c[1])
			require.True(t, ok)
			require.Equal(t, token, got)
		}
	})
	for _, c := range [][2]string{
		{"", ""}, {"", "wrap"}, {"", "my.job"}, {"", "a.b.c"}, {"dagbridge:", ""}, {"dagbridge: x", "x." + token}, {"mine: dagbridge:" + token, "x"}, {"", "v1.2"},
	} {
		_, ok := slurm.TokenOf(c[0], c[1])
		require.False(t, ok, c)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	site := slurm.Site{WorkDir: "/w", User: "svc"}
	require.Equal(t, "/w/svc/"+jobID, slurm.Dir(site, jobID))
	for path, want := range map[string]string{
		slurm.StdoutPath(site, jobID, token, -1):        "1.out",
		slurm.StderrPath(site, jobID, jobID+".12", 3):   "12_3.err",
		slurm.StartMarker(site, jobID, token, -1):       "1.start",
		slurm.ExitMarker(site, jobID, token, 0):         "1_0.exit",
		slurm.OutputsPath(site, site.User, jobID, -1):   "outputs.json",
		slurm.OutputsPath(site, site.User, jobID, 1000): "outputs_1000.json",
	} {
		require.Equal(t, "/w/svc/"+jobID+"/"+want, path)
	}
	require.Equal(t, "/w/other/j/outputs.json", slurm.OutputsPath(site, "other", "j", -1))
}

func TestExpression(t *testing.T) {
	t.Parallel()
	term := func(kind translators.DependencyType, id string) translators.Dependency {
		return translators.Dependency{Type: kind, NativeID: id}
	}
	ok, notOK, anyEnd, corr := translators.AfterOK, translators.AfterNotOK, translators.AfterAny, translators.AfterCorr
	for _, c := range []struct {
		depends translators.Dependencies
		want    string
	}{
		{translators.Dependencies{}, ""},
		{translators.Dependencies{Any: true}, ""},
		{translators.Dependencies{Terms: []translators.Dependency{term(ok, "1")}}, "afterok:1"},
		{translators.Dependencies{Terms: []translators.Dependency{term(anyEnd, "3"), term(ok, "2"), term(ok, "1_7"), term(ok, "2")}}, "afterok:2:1_7,afterany:3"},
		{translators.Dependencies{Any: true, Terms: []translators.Dependency{term(ok, "1"), term(ok, "2"), term(notOK, "1"), term(ok, "1")}}, "afterok:1?afterok:2?afternotok:1"},
		{translators.Dependencies{Terms: []translators.Dependency{term(corr, "5"), {Type: translators.After, NativeID: "4", Delay: 61 * time.Second}, term(translators.After, "6")}}, "after:4+2:6,aftercorr:5"},
		{translators.Dependencies{Terms: []translators.Dependency{term(ok, "")}}, "afterok:JOBID"},
	} {
		require.Equal(t, c.want, slurm.Expression(c.depends))
	}
}

func TestParseExitMarker(t *testing.T) {
	t.Parallel()
	got, err := slurm.ParseExitMarker([]byte("id=12_3\nrestart=2\nexit=121\nsignalled=no\nend=1790000000\nsentence=the outputs are refused: a=b\n"))
	require.NoError(t, err)
	require.Equal(t, slurm.Ending{
		NativeID: "12_3", Restarts: 2, ExitCode: 121, EndTime: time.Unix(1790000000, 0).UTC(), Sentence: "the outputs are refused: a=b",
	}, got)
	for _, text := range []string{"", "id=1\n", "x", "id=1\nrestart=0\nexit=\nend=1\n", "id=\nrestart=0\nexit=0\nend=1\n", "id=1\nrestart=0\nexit=0\nend=99999999999999999999\n"} {
		_, err := slurm.ParseExitMarker([]byte(text))
		require.ErrorContains(t, err, "damaged", text)
	}
}
