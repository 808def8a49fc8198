package slurm

import (
	"cmp"
	"context"
	"fmt"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// userOf is the user that a job belongs to.
func (b *Backend) userOf(job *dagbridgev1.Job) string { return cmp.Or(job.GetUser(), b.site.User) }

// siteOf is the site as it is for a job's user.
func (b *Backend) siteOf(job *dagbridgev1.Job) slurm.Site {
	site := b.site
	site.User = b.userOf(job)
	site.Pipelines = cmp.Or(site.Pipelines, site.WorkDir+"/"+site.User+"/pipelines")
	return site
}

// refuseUser says in a sentence why a submission cannot run as the user that it is to run as; "" when it can.
func (b *Backend) refuseUser(s translators.Submission) string {
	asked, user := s.Task.GetSlurm().GetUser(), s.Job.GetUser()
	if !b.impersonate {
		if asked != "" && asked != b.site.User {
			return fmt.Sprintf("on cluster %s all jobs run as %s, none as %s: its configuration does not say slurm.impersonate", b.name, b.site.User, asked)
		}
		return ""
	}
	if user == "" {
		return "" // not to be submitted, but to be shown
	}
	account, err := b.accounts.of(context.Background(), user)
	switch {
	case err != nil:
		return err.Error()
	case account.uid == 0:
		return "no job runs as root here: name another user, or let the token stand for one (auth.tokens[].user)"
	}
	return ""
}
