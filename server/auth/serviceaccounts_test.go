package auth_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/config"
)

// What a real API server says of real tokens is tested in integration/kubernetes; here, what it cannot be made to say.

const pod = "Bearer header.claims.signature"

// guarded is a guard that asks this address, and also knows the token "s3cret".
func guarded(t *testing.T, url string) *auth.Guard {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: gateway}}]}", url)
	require.NoError(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	guard, err := auth.New(config.Auth{
		Tokens: []config.Token{{Name: "airflow", SHA256: digest("s3cret")}},
		ServiceAccounts: &config.ServiceAccounts{Kubeconfig: kubeconfig, Audience: "dagbridge", Allow: []config.ServiceAccount{
			{Namespace: "ml", Name: "runner", User: "ann", ActAs: []string{"ben"}}, {Namespace: "lab"},
		}},
	})
	require.NoError(t, err)
	return guard
}

// apiServer answers all questions with one status, and counts them.
func apiServer(t *testing.T, told authenticationv1.TokenReviewStatus) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		review := authenticationv1.TokenReview{Status: told}
		review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
		_ = json.NewEncoder(w).Encode(review) // a caller that is gone
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestWhatAnAPIServerMaySay(t *testing.T) {
	t.Parallel()
	runner := authenticationv1.UserInfo{Username: "system:serviceaccount:ml:runner"}
	for name, c := range map[string]struct {
		told  authenticationv1.TokenReviewStatus
		owner string
		code  codes.Code
		fault string
	}{
		"whose it is":                  {authenticationv1.TokenReviewStatus{Authenticated: true, User: runner, Audiences: []string{"x", "dagbridge"}}, "system:serviceaccount:ml:runner", codes.OK, ""},
		"nothing of audiences":         {authenticationv1.TokenReviewStatus{Authenticated: true, User: runner}, "", codes.Unauthenticated, `does not say that this token is for the audience "dagbridge"`},
		"another audience":             {authenticationv1.TokenReviewStatus{Authenticated: true, User: runner, Audiences: []string{"x"}}, "", codes.Unauthenticated, "does not say"},
		"a person":                     {authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "ann"}, Audiences: []string{"dagbridge"}}, "", codes.Unauthenticated, "a person's"},
		"no":                           {authenticationv1.TokenReviewStatus{Error: "token has expired"}, "", codes.Unauthenticated, "token has expired"},
		"yes, and that it cannot know": {authenticationv1.TokenReviewStatus{Authenticated: true, User: runner, Audiences: []string{"dagbridge"}, Error: "half of it failed"}, "", codes.Unauthenticated, "half of it failed"},
		"an account that may not":      {authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "system:serviceaccount:ml:runner2"}, Audiences: []string{"dagbridge"}}, "", codes.PermissionDenied, "ml:runner2 may not use this gateway"},
		"any account of a namespace":   {authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "system:serviceaccount:lab:x"}, Audiences: []string{"dagbridge"}}, "system:serviceaccount:lab:x", codes.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := apiServer(t, c.told)
			caller, err := guarded(t, url).Authorise(t.Context(), method, pod)
			require.Equal(t, auth.Caller{Owner: c.owner}, caller)
			require.Equal(t, c.code, status.Code(err), "%v", err)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				require.NotContains(t, err.Error(), "claims", "a token is never repeated")
			}
		})
	}
}

// An API server is asked once for all calls with one token, and never about tokens that cannot be an account's.
func TestOneQuestionForAToken(t *testing.T) {
	t.Parallel()
	url, asked := apiServer(t, authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "system:serviceaccount:lab:x"}, Audiences: []string{"dagbridge"}})
	guard := guarded(t, url)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			_, err := guard.Authorise(t.Context(), method, pod)
			require.NoError(t, err)
		})
	}
	calls.Wait()
	_, err := guard.Authorise(t.Context(), method, pod)
	require.NoError(t, err)
	_, err = guard.Authorise(t.Context(), method, "Bearer guessed")
	require.ErrorContains(t, err, "does not know this token")
	caller, err := guard.Authorise(t.Context(), method, "Bearer s3cret")
	require.NoError(t, err)
	require.Equal(t, "airflow", caller.Owner)
	require.EqualValues(t, 1, asked.Load())
}

// An API server that takes calls and never answers refuses pods, in the time that it has, and holds nobody else up.
func TestAnAPIServerThatHangs(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, hangs.Close()) }()
	guard := guarded(t, "http://"+hangs.Addr().String())
	refused := make(chan error, 20)
	for range cap(refused) {
		go func() {
			_, err := guard.Authorise(t.Context(), method, pod)
			refused <- err
		}()
	}
	caller, err := guard.Authorise(t.Context(), method, "Bearer s3cret")
	require.NoError(t, err)
	require.Equal(t, "airflow", caller.Owner)
	require.Empty(t, refused, "the others still wait")
	deadline := time.After(30 * time.Second)
	for range cap(refused) {
		select {
		case err := <-refused:
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.ErrorContains(t, err, "cannot be asked of its Kubernetes API server")
		case <-deadline:
			t.Fatal("a pod's call hangs")
		}
	}
}

func TestAsWhomAnAccountsJobsRun(t *testing.T) {
	t.Parallel()
	guard := guarded(t, "http://127.0.0.1:1")
	for _, c := range []struct{ owner, asked, user, fault string }{
		{"system:serviceaccount:ml:runner", "", "ann", ""},
		{"system:serviceaccount:ml:runner", "ben", "ben", ""},
		{"system:serviceaccount:ml:runner", "cid", "", "the account system:serviceaccount:ml:runner stands for the user ann and may not act as cid"},
		{"system:serviceaccount:lab:x", "", "", "stands for no user"},
		{"system:serviceaccount:lab:x", "ann", "", "stands for no user"},
	} {
		user, err := guard.UserOf(c.owner, c.asked)
		require.Equal(t, c.user, user)
		if c.fault != "" {
			require.ErrorContains(t, err, c.fault)
		} else {
			require.NoError(t, err)
		}
	}
}
