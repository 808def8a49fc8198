package auth_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os/user"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/config"
)

const method = "/dagbridge.v1.BridgeService/GetJob"

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func TestAuthorise(t *testing.T) {
	t.Parallel()
	guard, err := auth.New(config.Auth{Tokens: []config.Token{{Name: "airflow", SHA256: digest("s3cret")}, {Name: "kfp", SHA256: strings.ToUpper(digest("other"))}}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		method, authorization, owner, fault string
	}{
		"the first token":    {method, "Bearer s3cret", "airflow", ""},
		"the second token":   {method, "bearer other", "kfp", ""},
		"spaces around":      {method, "Bearer  s3cret ", "airflow", ""},
		"none":               {method, "", "", "this gateway needs a token"},
		"a wrong one":        {method, "Bearer s3cre", "", "the gateway does not know this token"},
		"an empty one":       {method, "Bearer ", "", "is not of the form"},
		"its digest":         {method, "Bearer " + digest("s3cret"), "", "the gateway does not know this token"},
		"another scheme":     {method, "Basic s3cret", "", "is not of the form"},
		"health needs none":  {"/grpc.health.v1.Health/Check", "", "", ""},
		"nor does it matter": {"/grpc.health.v1.Health/Watch", "Bearer wrong", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller, err := guard.Authorise(t.Context(), c.method, c.authorization)
			if c.fault == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fault)
				require.Equal(t, codes.Unauthenticated, status.Code(err))
				require.NotContains(t, err.Error(), "s3cre", "a token is never repeated")
			}
			require.Equal(t, auth.Caller{Owner: c.owner}, caller)
		})
	}
}

// A token that a job's cluster vouches for opens one door.
func TestAJobsOwnToken(t *testing.T) {
	t.Parallel()
	guard, err := auth.New(config.Auth{Tokens: []config.Token{{Name: "airflow", SHA256: digest("s3cret")}}})
	require.NoError(t, err)
	away := errors.New("the cluster does not answer")
	guard.Trust(func(_ context.Context, bearer string) (string, error) {
		switch bearer {
		case "j0b":
			return "42", nil
		case "away":
			return "", away
		}
		return "", nil
	})
	const put = "/dagbridge.v1.BridgeService/PutOutputs"
	for _, door := range []string{put, "/v1/jobs/42/outputs"} {
		caller, err := guard.Authorise(t.Context(), door, "Bearer j0b")
		require.NoError(t, err)
		require.Equal(t, auth.Caller{Owner: "job 42", Job: "42"}, caller)
		caller, err = guard.Authorise(t.Context(), door, "Bearer s3cret")
		require.NoError(t, err)
		require.Equal(t, auth.Caller{Owner: "airflow"}, caller, "a configured token is nobody's job")
		_, err = guard.Authorise(t.Context(), door, "Bearer nobody's")
		require.Equal(t, codes.Unauthenticated, status.Code(err))
		_, err = guard.Authorise(t.Context(), door, "Bearer away")
		require.ErrorIs(t, err, away)
	}
	for _, door := range []string{method, "/v1/jobs", "/v1/jobs/42", "/v1/jobs/42/logs", "/v1/jobs/42:cancel", "/v1/runs", "/metrics", "/dagbridge.v1.BridgeService/SubmitTask"} {
		_, err := guard.Authorise(t.Context(), door, "Bearer j0b")
		require.Equal(t, codes.Unauthenticated, status.Code(err), door)
	}
	ctx, err := guard.Admit(metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer j0b")), put)
	require.NoError(t, err)
	require.Equal(t, "42", auth.Job(ctx))
}

func TestWithoutTokensEverybodyIsTheGatewaysUser(t *testing.T) {
	t.Parallel()
	guard, err := auth.New(config.Auth{})
	require.NoError(t, err)
	self, err := user.Current()
	require.NoError(t, err)
	ctx, err := guard.Admit(t.Context(), method)
	require.NoError(t, err)
	require.Equal(t, self.Username, auth.Owner(ctx))
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	guard, err := auth.New(config.Auth{Tokens: []config.Token{{Name: "airflow", SHA256: digest("s3cret")}}})
	require.NoError(t, err)
	_, err = guard.Admit(t.Context(), method)
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	ctx, err := guard.Admit(metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer s3cret")), method)
	require.NoError(t, err)
	require.Equal(t, "airflow", auth.Owner(ctx))
	require.Empty(t, auth.Owner(t.Context()))
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]config.Token{
		"no hex":    {Name: "a", SHA256: strings.Repeat("x", 64)},
		"too short": {Name: "a", SHA256: "ab"},
		"no name":   {SHA256: digest("x")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := auth.New(config.Auth{Tokens: []config.Token{token}})
			require.ErrorContains(t, err, "auth.tokens[0]")
		})
	}
}

func TestAsWhomAnOwnersJobsRun(t *testing.T) {
	t.Parallel()
	guard, err := auth.New(config.Auth{Tokens: []config.Token{
		{Name: "ann", SHA256: digest("1")}, {Name: "airflow", SHA256: digest("2"), User: "air", ActAs: []string{"ann", "ben"}},
		{Name: "portal", SHA256: digest("3"), ActAs: []string{"*"}},
	}})
	require.NoError(t, err)
	for name, c := range map[string]struct{ owner, asked, user, fault string }{
		"the name is the user":         {"ann", "", "ann", ""},
		"the token says which user":    {"airflow", "", "air", ""},
		"its own user may be named":    {"airflow", "air", "air", ""},
		"one that it may act as":       {"airflow", "ben", "ben", ""},
		"one that it may not act as":   {"airflow", "cid", "", "airflow stands for the user air and may not act as cid"},
		"its own name is not its user": {"airflow", "airflow", "", "may not act as airflow"},
		"nobody else":                  {"ann", "ben", "", "may not act as ben"},
		"whomever":                     {"portal", "cid", "cid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, err := guard.UserOf(c.owner, c.asked)
			require.Equal(t, c.user, user)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
		})
	}
}

func TestWithoutTokensJobsRunAsTheGatewaysUser(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	require.NoError(t, err)
	guard, err := auth.New(config.Auth{})
	require.NoError(t, err)
	own, err := guard.UserOf(me.Username, "")
	require.NoError(t, err)
	require.Equal(t, me.Username, own)
	_, err = guard.UserOf(me.Username, "ben")
	require.ErrorContains(t, err, "not as ben")
}
