package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dagbridge/dagbridge/translators/slurm"
)

// dialect is a version of slurmrestd's interface, and what a certain slurmrestd serves of it. Answers need none: they are
// decoded by types that read every version's shapes.
type dialect struct {
	// version is one of slurm.Versions.
	version string
	// release of Slurm's, "" where it is not told.
	release string
	// accounting: slurmdbd is reached through it.
	accounting bool
	// states: it lists nothing but the jobs' states, which is a hundredth of the listing of everything.
	states bool
	// bulk: it cancels many jobs at once.
	bulk bool
}

// plain says whether it is the version before the one that changed everything.
func (d *dialect) plain() bool { return d.version == "v0.0.38" }

// String is the dialect for people.
func (d *dialect) String() string {
	if d.release == "" {
		return "slurmrestd " + d.version
	}
	return "slurmrestd " + d.version + " of Slurm " + d.release
}

// Paths, without the host.
func (d *dialect) submit() string       { return "/slurm/" + d.version + "/job/submit" }
func (d *dialect) job(id string) string { return "/slurm/" + d.version + "/job/" + id }
func (d *dialect) jobs() string         { return "/slurm/" + d.version + "/jobs" + d.slash() }
func (d *dialect) jobStates() string    { return "/slurm/" + d.version + "/jobs/state/" }
func (d *dialect) diag() string         { return "/slurm/" + d.version + "/diag" + d.slash() }
func (d *dialect) accounted() string    { return "/slurmdb/" + d.version + "/jobs" + d.slash() }

// slash ends the paths of lists, since v0.0.39.
func (d *dialect) slash() string {
	if d.plain() {
		return ""
	}
	return "/"
}

// since is a moment as the dialect wants it told; v0.0.40 takes no bare number.
func (d *dialect) since(t time.Time) string {
	seconds := strconv.FormatInt(t.Unix(), 10)
	if d.plain() {
		return seconds
	}
	return "uts" + seconds
}

// many are several values of a parameter: a list with commas once, the parameter again and again since v0.0.39.
func (d *dialect) many(values []string) []string {
	if d.plain() {
		return []string{strings.Join(values, ",")}
	}
	return values
}

// pathOpenAPI is where every slurmrestd says what it serves, by itself: slurmctld is not asked, nor is the token tested.
const pathOpenAPI = "/openapi/v3"

// release is what newer documents call their version: "Slurm-24.11.5&openapi/slurmctld".
var release = regexp.MustCompile(`^Slurm-([0-9.]+)`)

// ask finds out what slurmrestd serves: the newest version that is known here, or the one that is wanted.
func (r *rest) ask(ctx context.Context) (*dialect, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer, err := r.authorized(ctx, call{method: http.MethodGet, path: pathOpenAPI})
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.body.Close() }()
	paths := map[string]methods{}
	var info struct{ Version string }
	decoder := json.NewDecoder(answer.body)
	err = object(decoder, func(key string) error {
		switch key {
		case "paths":
			return object(decoder, func(path string) error {
				var m methods
				err := decoder.Decode(&m)
				paths[path] = m
				return err
			})
		case "info":
			return decoder.Decode(&info)
		default:
			return skip(decoder)
		}
	})
	if err != nil {
		return nil, &errNotSent{fmt.Sprintf("slurmrestd at %s answers %d to the question what it serves (%s), and not with an OpenAPI document: %v", r.URL, answer.status, pathOpenAPI, err)}
	}
	for _, version := range slurm.Versions {
		d := &dialect{version: version}
		if paths[d.submit()] == nil || r.Version != "" && r.Version != version {
			continue
		}
		d.accounting, d.states, d.bulk = paths[d.accounted()] != nil, paths[d.jobStates()] != nil, paths[d.jobs()]["delete"] != nil
		if match := release.FindStringSubmatch(info.Version); match != nil {
			d.release = match[1]
		}
		return d, nil
	}
	return nil, &errNotSent{fmt.Sprintf("slurmrestd at %s serves %s, of which the gateway speaks none%s", r.URL, served(paths), r.wanted())}
}

// wanted is what the configuration says of the version.
func (r *rest) wanted() string {
	if r.Version == "" {
		return " (it speaks " + strings.Join(slurm.Versions, ", ") + ")"
	}
	return " when rest.version is " + r.Version
}

// methods of a path, and what the document says of each.
type methods map[string]json.RawMessage

// served are the versions among a document's paths.
func served(paths map[string]methods) string {
	var versions []string
	for path := range paths {
		if version, found := strings.CutSuffix(strings.TrimPrefix(path, "/slurm/"), "/job/submit"); found {
			versions = append(versions, version)
		}
	}
	if len(versions) == 0 {
		return "no version of Slurm's interface"
	}
	slices.Sort(versions)
	return strings.Join(versions, ", ")
}

// spoken is the dialect that slurmrestd speaks, asked for when it is not known.
func (r *rest) spoken(ctx context.Context) (*dialect, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	if d := r.dialect.Load(); d != nil {
		return d, nil
	}
	d, err := r.ask(ctx)
	if err != nil {
		var notSent *errNotSent
		if !errors.As(err, &notSent) {
			err = &errNotSent{err.Error()} // what was to be said was not
		}
		return nil, err
	}
	r.dialect.Store(d)
	r.log.Info("slurmrestd answers", "speaks", d.String(), "url", r.URL)
	return d, nil
}
