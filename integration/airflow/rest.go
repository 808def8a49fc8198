package airflowtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// old says that it is Airflow 2, whose REST interface is another.
func (a *Airflow) old() bool { return a.Version[0] == '2' }

// token is that of an administrator, who needs no password.
func (a *Airflow) token(t testing.TB) string {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bearer == "" {
		answer, err := http.Get(a.URL + "/auth/token")
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		var body struct {
			Token string `json:"access_token"`
		}
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&body))
		a.bearer = body.Token
	}
	return a.bearer
}

// call asks Airflow, and returns the status and the body. While the api-server is busy or away it asks again.
func (a *Airflow) call(t testing.TB, method, path, accept string, body any) (int, []byte) {
	t.Helper()
	content, err := json.Marshal(body)
	require.NoError(t, err)
	base := a.URL + "/api/v2"
	if a.old() {
		base = a.URL + "/api/v1"
	}
	var status int
	var text []byte
	once := func() error {
		request, err := http.NewRequestWithContext(t.Context(), method, base+path, bytes.NewReader(content))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", accept)
		if a.old() {
			request.SetBasicAuth("admin", "admin")
		} else {
			request.Header.Set("Authorization", "Bearer "+a.token(t))
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		status = answer.StatusCode
		text, err = io.ReadAll(answer.Body)
		return err
	}
	// what changes something is not repeated
	for end := time.Now().Add(time.Minute); ; time.Sleep(250 * time.Millisecond) {
		if err = once(); err == nil || method != http.MethodGet || time.Now().After(end) {
			break
		}
	}
	require.NoError(t, err, "%s %s", method, path)
	return status, text
}

// get decodes an answer, which must be one.
func (a *Airflow) get(t testing.TB, path string, into any) {
	t.Helper()
	status, text := a.call(t, http.MethodGet, path, "application/json", nil)
	require.Equal(t, http.StatusOK, status, "%s: %s", path, text)
	require.NoError(t, json.Unmarshal(text, into), "%s: %s", path, text)
}

// do changes something.
func (a *Airflow) do(t testing.TB, method, path string, body any) {
	t.Helper()
	status, text := a.call(t, method, path, "application/json", body)
	require.Less(t, status, 300, "%s %s: %s", method, path, text)
}
