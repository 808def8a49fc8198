package slurm

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// A container is started by the wrapper, which stays outside: its markers, its guard and its reading of outputs need nothing
// of the image, and no way into Slurm has to know of containers. Inside, the job's folder and the working directory are
// where they are outside, so that DAGBRIDGE_OUTPUT and DAGBRIDGE_INPUTS, and a script, are found. Prologues are read on the
// node, before the runtime starts: a site's may be what makes it available.

// The container runtimes, as slurm.container names them.
const (
	apptainer    = "apptainer"
	charliecloud = "charliecloud"
	oci          = "oci"
	pyxis        = "pyxis"
)

// Runtimes are the container runtimes that a task, or a site, may name.
var Runtimes = []string{apptainer, charliecloud, oci, pyxis}

// runtime is what runs the task's image; "" when nobody says.
func (t *translation) runtime() string {
	return cmp.Or(t.submission.Task.GetSlurm().GetContainer(), t.site.Container)
}

// ownEntryPoint says whether the image's own program is to run.
func (t *translation) ownEntryPoint() bool {
	task := t.submission.Task
	return task.GetCommand() == nil && task.GetScript() == nil && len(task.GetContainer().GetCommand()) == 0
}

// container checks what the runtime can do.
func (t *translation) container() {
	task, runtime := t.submission.Task, t.runtime()
	c := task.GetContainer()
	if c == nil {
		if task.GetSlurm().GetContainer() != "" {
			t.fault("slurm.container", "it names what runs an image, and the task has no container.image")
		}
		return
	}
	if t.standIn() != "" {
		if t.ownEntryPoint() {
			t.fault("container", "a folder stands in for %s, and what the image runs by itself is not known: give the task a command", c.GetImage())
		}
		return
	}
	if runtime == "" && len(t.site.Images) > 0 {
		t.fault("container.image", "nothing stands in for %s: name a folder with its programs (clusters[].slurm.images: [{name: %q, folder: /opt/venv}]), "+
			"or what runs containers (slurm.container)", c.GetImage(), c.GetImage())
		return
	}
	if !slices.Contains(Runtimes, runtime) {
		t.fault("slurm.container", "the cluster's configuration names no container runtime: say which one its nodes have: %s", strings.Join(Runtimes, ", "))
		return
	}
	switch {
	case strings.HasPrefix(c.GetImage(), "-"):
		t.fault("container.image", "%q would be read as an option of the runtime", c.GetImage())
	case runtime == oci && !strings.HasPrefix(c.GetImage(), "/"):
		t.fault("container.image", "%q is not the absolute path of an OCI bundle, a folder with config.json and rootfs on the nodes", c.GetImage())
	}
	switch {
	case !t.ownEntryPoint() || runtime == apptainer:
	case runtime != pyxis:
		t.fault("container", "%s does not run an image's own program: say it in container.command, command or script", runtime)
	case len(c.GetArgs()) == 0:
		t.fault("container", "srun needs a program, so that with pyxis an image's own runs only with arguments: say them in container.args, or the program "+
			"in container.command, command or script")
	}
	for _, path := range []struct{ field, value string }{{"workingDirectory", task.GetWorkingDirectory()}, {"slurm.container", t.site.WorkDir}} {
		if runtime != oci && strings.ContainsAny(path.value, ":,") {
			t.fault(path.field, "%q has ':' or ',', and could not be mounted into the container", path.value)
		}
	}
	for _, name := range t.envNames() {
		switch {
		case runtime == pyxis && strings.Contains(name, ","):
			t.fault("env", "%q has ',', and could not be handed into the container by pyxis", name)
		case runtime == oci && !shellName.MatchString(name):
			t.fault("env", "%q is no name that a shell hands on, and in an OCI bundle it is sh that starts the program", name)
		}
	}
}

// shellName are the variables that every sh hands on; some drop the others.
var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// contained is a command line inside the task's container, and what starts it, in shell words. Of an image's own program argv
// is empty.
func (t *translation) contained(argv []string) []string {
	c := t.submission.Task.GetContainer()
	if t.script == nil && t.submission.Task.GetCommand() == nil {
		argv = quoted(slices.Concat(c.GetCommand(), c.GetArgs()))
	}
	image := Quote(c.GetImage())
	switch t.runtime() {
	case charliecloud:
		start := []string{"ch-run"}
		for _, folder := range t.mounted() {
			start = append(start, "--bind="+folder+":"+folder)
		}
		return t.perTaskOr(slices.Concat(start, []string{`--cd="$workdir"`, image, "--"}, argv))
	case apptainer:
		verb := "exec"
		if t.ownEntryPoint() {
			verb = "run"
		}
		start := []string{"apptainer", verb}
		for _, folder := range t.mounted() {
			start = append(start, "--bind="+folder)
		}
		return t.perTaskOr(slices.Concat(start, []string{`--pwd="$workdir"`, image}, argv))
	case pyxis:
		var mounts []string
		for _, folder := range t.mounted() {
			mounts = append(mounts, folder+":"+folder)
		}
		step := append(t.step(), "--container-image="+image, "--container-mounts="+strings.Join(mounts, ","), `--container-workdir="$workdir"`,
			"--container-env="+Quote(strings.Join(t.envNames(), ",")))
		if t.ownEntryPoint() {
			step = append(step, "--container-entrypoint")
		}
		return slices.Concat(step, []string{"--"}, argv)
	default:
		return slices.Concat(t.step(), []string{"--container=" + image, "--", "sh", "-c", Quote(enterBundle), `"$workdir"`}, argv)
	}
}

// enterBundle changes into the working directory inside of a bundle, whose config.json alone says what is mounted and where
// programs start.
const enterBundle = `if ! [ -w "$DAGBRIDGE_OUTPUT" ] || ! cd -- "$0" 2>/dev/null; then
  printf 'dagbridge: not run: the config.json of the bundle mounts no %s; it must mount the folder of the gateway (workDir) and that of the task at their own paths\n' "$0" >&2
  exit 1
fi
exec "$@"`

// mounted are the folders that the program finds where they are outside, in shell words.
func (t *translation) mounted() []string {
	folders := []string{`"$dir"`}
	if t.submission.Task.GetWorkingDirectory() != "" { // else it is that, or in it
		folders = append(folders, `"$workdir"`)
	}
	if translators.Launches(t.submission.Task) {
		folders = append(folders, Quote(path.Dir(t.site.Launcher)), Quote(t.site.Pipelines))
	}
	return folders
}

// step starts what is in a container by srun: once on this node, with all that the job has here, or once for each task.
func (t *translation) step() []string {
	if t.perTask() {
		return t.srun()
	}
	step := []string{"srun", "--export=ALL", "--nodes=1", "--ntasks=1", `--cpus-per-task="$SLURM_CPUS_ON_NODE"`}
	if t.job.Nodes > 1 {
		step = append(step, `--nodelist="$SLURMD_NODENAME"`)
	}
	return step
}

// envNames are the variables that are the task's, and not the image's to set.
func (t *translation) envNames() []string {
	names := map[string]bool{}
	for _, m := range append([]map[string]string{t.submission.Task.GetEnv()}, itemEnvs(t.submission.Task.GetArray())...) {
		for name := range m {
			names[name] = true
		}
	}
	if translators.Launches(t.submission.Task) {
		names[translators.LauncherVariable], names[translators.PipelinesVariable] = true, true
	}
	own := slices.Sorted(maps.Keys(names))
	return append(own, "DAGBRIDGE_INPUTS", "DAGBRIDGE_JOB_ID", "DAGBRIDGE_MAP_INDEX", "DAGBRIDGE_OUTPUT", "DAGBRIDGE_RUN", "DAGBRIDGE_TASK",
		"DAGBRIDGE_TRY")
}

func itemEnvs(array *dagbridgev1.Array) []map[string]string {
	var envs []map[string]string
	for _, item := range array.GetItems() {
		envs = append(envs, item.GetEnv())
	}
	return envs
}

// insideEnv are the names under which apptainer takes variables that it otherwise sets itself.
func (t *translation) insideEnv(assignments []string) []string {
	if !t.isContained() || t.runtime() != apptainer {
		return assignments
	}
	for _, assignment := range assignments {
		for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
			if strings.HasPrefix(assignment, name+"=") {
				assignments = append(assignments, "APPTAINERENV_"+assignment)
			}
		}
	}
	return assignments
}
