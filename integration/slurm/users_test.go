package slurmtest_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/translators"
)

const (
	alice = slurmtest.User
	bob   = "slurmtest2"
)

// acting are ways in by which the gateway acts as its users.
var acting = map[string]func(*testing.T, *slurmtest.Cluster, *slurm.Options){
	"REST, by root's token": func(t *testing.T, c *slurmtest.Cluster, o *slurm.Options) { byTokenOf(t, c, o, "root") },
	"REST, by SlurmUser's":  func(t *testing.T, c *slurmtest.Cluster, o *slurm.Options) { byTokenOf(t, c, o, "slurm") },
	"CLI":                   func(_ *testing.T, c *slurmtest.Cluster, o *slurm.Options) { o.CLI = &slurm.CLI{Path: c.Bin()} },
	"SSH": func(t *testing.T, c *slurmtest.Cluster, o *slurm.Options) {
		o.SSH = login(c, c.LogIn(t))
		o.SSH.User = "root" // who needs no line in sudoers
	},
}

func byTokenOf(t *testing.T, c *slurmtest.Cluster, o *slurm.Options, user string) {
	file := filepath.Join(t.TempDir(), "jwt")
	require.NoError(t, os.WriteFile(file, []byte(c.Token(t, user, "86400")), 0o600))
	o.REST = &slurm.REST{URL: c.URL, User: user, TokenFile: file}
}

// as makes a submission a user's.
func as(user string, s translators.Submission) translators.Submission {
	s.Job.User = user
	return s
}

// runAs runs a command as a user who has nothing to do with the gateway.
func runAs(t *testing.T, user string, argv ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: credential(t, user)}
	text, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	require.NoError(t, err)
	uid, err := strconv.Atoi(u.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(u.Gid)
	require.NoError(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func TestJobsBelongToThoseWhoSubmitThem(t *testing.T) {
	t.Parallel()
	belongTo(t, slurmtest.Shared(t), slices.Sorted(maps.Keys(acting))...)
	// outside of their root file systems the commands of other releases are root's alone
	for _, release := range []slurmtest.Release{slurmtest.Middle, slurmtest.Newest} {
		if os.Getenv("DAGBRIDGE_LONG") != "" {
			t.Run(string(release), func(t *testing.T) {
				belongTo(t, slurmtest.Start(t, slurmtest.Options{Release: release}), "REST, by root's token", "REST, by SlurmUser's")
			})
		}
	}
}

func belongTo(t *testing.T, c *slurmtest.Cluster, ways ...string) {
	for _, name := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c, way{}, func(o *slurm.Options) {
				o.Impersonate = true
				acting[name](t, c, o)
			})
			t.Run("who runs, who owns, who is charged", func(t *testing.T) { belongs(t, b) })
			t.Run("held, released, waiting and cancelled", func(t *testing.T) { ordered(t, b) })
			t.Run("nobody reads or writes another's", func(t *testing.T) { private(t, b) })
			t.Run("a stranger's job with the same token is not taken for it", func(t *testing.T) { forged(t, b) })
		})
	}
}

func belongs(t *testing.T, b *bench) {
	// HOME and the environment are as for every job: nothing of the gateway's, of sudo's or of the login's
	whoAmI := `umask; id -un; id -Gn; env | grep -c -e ^SUDO -e ^XDG -e ^MAIL; echo '{"a": 1}' >"$DAGBRIDGE_OUTPUT"`
	for _, user := range []string{alice, bob} {
		sub := as(user, backendtest.Submission(t, task("sh", "-c", whoAmI)))
		known := b.submit(t, sub)
		b.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))

		dir := filepath.Join(b.options.WorkDir, user, sub.Job.Id)
		lines := strings.Fields(readFile(t, filepath.Join(dir, "1.out")))
		require.Equal(t, []string{"0022", user, user, "0"}, lines)
		uid := credential(t, user).Uid
		require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := entry.Info()
			require.NoError(t, err)
			stat := info.Sys().(*syscall.Stat_t)
			require.Equal(t, []uint32{uid, uint32(os.Getgid())}, []uint32{stat.Uid, stat.Gid}, path)
			if entry.IsDir() {
				require.Equal(t, os.ModeDir|os.ModeSetgid|0o770, info.Mode(), path)
			}
			return nil
		}))
		outputs, err := b.backend.Outputs(t.Context(), known.Ref, sub.Job, -1)
		require.NoError(t, err)
		require.JSONEq(t, `{"a": 1}`, string(outputs))
		require.Eventually(t, func() bool {
			return b.Run(t, "sacct", "-X", "-n", "-P", "-j", known.Ref.ID, "-o", "User,State") == user+"|COMPLETED"
		}, patience, 200*time.Millisecond)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// ordered: jobs of two users in one call.
func ordered(t *testing.T, b *bench) {
	var all []backend.Known
	var release []backend.Change
	for _, user := range []string{alice, bob} {
		first := b.submit(t, as(user, held(backendtest.Submission(t, task("sleep", "600")))))
		waits := as(user, backendtest.Submission(t, task("true")))
		waits.Depends.Terms = []translators.Dependency{{Type: translators.AfterOK, NativeID: first.Ref.ID}}
		second := b.submit(t, waits)
		b.await(t, first, "held", func(o backend.Observation) bool { return o.Held })
		b.await(t, second, "waiting", func(o backend.Observation) bool { return len(o.Dependencies) == 1 })
		all = append(all, first, second)
		release = append(release, backend.Change{Ref: first.Ref, Job: first.Job, Release: true},
			backend.Change{Ref: second.Ref, Job: second.Job, Depends: &translators.Dependencies{}})
	}
	require.Equal(t, make([]error, 4), b.backend.Alter(t.Context(), release))
	for i := 0; i < len(all); i += 2 {
		b.await(t, all[i], "RUNNING", is(dagbridgev1.Job_RUNNING))
		b.await(t, all[i+1], "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	}
	require.Equal(t, make([]error, 4), b.backend.Cancel(t.Context(), all))
	for i := 0; i < len(all); i += 2 {
		b.await(t, all[i], "CANCELLED", is(dagbridgev1.Job_CANCELLED))
	}
}

// private: not from the machine, and not from a job.
func private(t *testing.T, b *bench) {
	sub := as(bob, backendtest.Submission(t, task("sh", "-c", "echo secret; sleep 600")))
	known := b.submit(t, sub)
	b.await(t, known, "RUNNING", is(dagbridgev1.Job_RUNNING))
	dir := filepath.Join(b.options.WorkDir, bob, sub.Job.Id)
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "1.out")) // the program starts a moment after the job
		return string(text) == "secret\n"
	}, patience, 50*time.Millisecond)
	attacks := []string{
		"cat " + dir + "/1.out", "ls " + dir, "touch " + dir + "/1.exit", "rm -f " + dir + "/1.start", "mv " + dir + " " + dir + ".old",
		"mkdir " + filepath.Dir(dir) + "/0196f000-0000-7000-8000-000000000009", "ln -s /etc " + filepath.Dir(dir) + "/x",
	}
	for _, attack := range attacks {
		text, err := runAs(t, alice, "sh", "-c", attack)
		require.Error(t, err, attack)
		require.Contains(t, text, "ermission denied", attack)
	}
	all := fmt.Sprintf("for attack in '%s'; do sh -c \"$attack\" && echo done; done; exit 0", strings.Join(attacks, "' '"))
	attacker := as(alice, backendtest.Submission(t, task("sh", "-c", all)))
	b.await(t, b.submit(t, attacker), "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	require.Empty(t, readFile(t, filepath.Join(b.options.WorkDir, alice, attacker.Job.Id, "1.out")))
	// nor does an order in alice's name reach bob's job
	mine := known
	mine.Job = &dagbridgev1.Job{Id: sub.Job.Id, Key: sub.Job.Key, User: alice}
	mine.Double = true
	require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{mine}))
	b.await(t, known, "RUNNING", is(dagbridgev1.Job_RUNNING))
	require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{known}))
	b.await(t, known, "CANCELLED", is(dagbridgev1.Job_CANCELLED))
}

func forged(t *testing.T, b *bench) {
	sub := as(bob, backendtest.Submission(t, task("true")))
	comment := slurmCommentOf(t, b, sub)
	id := b.Run(t, "sbatch", "--parsable", "--uid="+alice, "--hold", "--output=/dev/null", "--chdir=/", "--comment="+comment, "--wrap=true")
	require.Equal(t, alice, b.Run(t, "squeue", "-h", "-j", id, "-o", "%u"))
	require.Eventually(t, func() bool { // accounting may have to catch up
		presence := b.find(t, sub).Presence
		require.NotEqual(t, backend.Found, presence)
		return presence == backend.Absent
	}, patience, 200*time.Millisecond)
	known := b.submit(t, sub)
	b.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	finding := b.find(t, sub)
	require.Equal(t, backend.Found, finding.Presence, finding.Proof)
	require.Len(t, finding.Refs, 1)
	require.Equal(t, known.Ref.ID, finding.Refs[0].ID)
	b.Run(t, "scancel", id)
}

// slurmCommentOf is what the native job of a submission is recognised by.
func slurmCommentOf(t *testing.T, b *bench, sub translators.Submission) string {
	t.Helper()
	rendering, faults := b.backend.Render(sub)
	require.Empty(t, faults)
	for line := range strings.Lines(rendering.Text) {
		if comment, found := strings.CutPrefix(line, "#SBATCH --comment="); found {
			return strings.Trim(strings.TrimSpace(comment), `"`)
		}
	}
	t.Fatal("there is no comment")
	return ""
}

func TestWhomNoJobRunsAs(t *testing.T) {
	t.Parallel()
	c := slurmtest.Shared(t)
	for name, test := range map[string]struct {
		impersonate bool
		asked, user string
		fault       string
	}{
		"a user":                           {true, "", alice, ""},
		"another":                          {true, bob, bob, ""},
		"root":                             {true, "root", "root", "no job runs as root"},
		"root by another name":             {true, "toor", "toor", "no user toor"},
		"a number":                         {true, "0", "0", "no name of a user"},
		"a folder above":                   {true, "..", "..", "no name of a user"},
		"an option":                        {true, "-u", "-u", "no name of a user"},
		"somebody unknown":                 {true, "nobody-knows", "nobody-knows", "there is no user nobody-knows"},
		"its own, where it acts as nobody": {false, alice, "", ""},
		"another, where it acts as nobody": {false, bob, "", "all jobs run as slurmtest, none as slurmtest2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := way{rest: true}.options(t, c)
			o.Impersonate = test.impersonate
			sub := as(test.user, backendtest.Submission(t, task("true")))
			sub.Task.Slurm = &dagbridgev1.SlurmOptions{User: test.asked}
			faults := newBackend(t, o).Check(sub)
			if test.fault == "" {
				require.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1)
			require.Equal(t, "slurm.user", faults[0].Field)
			require.Contains(t, faults[0].Description, test.fault)
		})
	}
}

// letBecome lets a user become another by sudo, as an administrator would let the gateway's.
func letBecome(t *testing.T, user, other string) {
	t.Helper()
	rule := filepath.Join("/etc/sudoers.d", fmt.Sprintf("dagbridge-test-%d", os.Getpid()))
	require.NoError(t, os.WriteFile(rule, []byte(user+" ALL=("+other+") NOPASSWD: /usr/bin/env\n"), 0o440))
	t.Cleanup(func() { require.NoError(t, os.Remove(rule)) })
}

// An ordinary user logs in: sudo lets it become who its jobs are, once it may, and Slurm tells it of their jobs, once it may.
func TestAnOrdinaryLoginActsAsOthers(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{Set: []string{"PrivateData=jobs"}})
	b := newBench(t, c, way{}, func(o *slurm.Options) {
		o.Impersonate = true
		o.SSH = login(c, slurmtest.LogIn(t))
	})
	own := as(alice, backendtest.Submission(t, task("id", "-un")))
	b.await(t, b.submit(t, own), "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))

	sub := as(bob, backendtest.Submission(t, task("id", "-un")))
	result := b.try(t, sub)
	require.Equal(t, backend.NotSent, result.Outcome)
	require.Contains(t, result.Message, "PrivateData=jobs")
	c.Run(t, "sacctmgr", "-i", "modify", "user", alice, "set", "adminlevel=Operator")
	require.Eventually(t, func() bool { result = b.try(t, sub); return !strings.Contains(result.Message, "PrivateData") }, patience, 200*time.Millisecond)
	require.Equal(t, backend.NotSent, result.Outcome, result.Message)
	require.Contains(t, result.Message, "does not run as "+bob+": sudo: ")

	letBecome(t, alice, bob)
	known := b.submit(t, held(sub))
	b.await(t, known, "held", func(o backend.Observation) bool { return o.Held })
	require.Equal(t, []error{nil}, b.backend.Alter(t.Context(), []backend.Change{{Ref: known.Ref, Job: known.Job, Release: true}}))
	b.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	require.Equal(t, bob+"\n", readFile(t, filepath.Join(b.options.WorkDir, bob, sub.Job.Id, "1.out")))
	endless := b.submit(t, as(bob, backendtest.Submission(t, task("sleep", "600"))))
	b.await(t, endless, "RUNNING", is(dagbridgev1.Job_RUNNING))
	require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{endless}))
	b.await(t, endless, "CANCELLED", is(dagbridgev1.Job_CANCELLED))
}
