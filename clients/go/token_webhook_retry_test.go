package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A response of a webhook that is not a review, and the number of calls that follow.
type refusedReview struct {
	code       int
	retryAfter string
	body       string
	times      int
}

func refusedReviews() map[string]refusedReview {
	status := func(members string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no",%s}`, members)
	}
	return map[string]refusedReview{
		"text-403":                   {http.StatusForbidden, "", "no", 1},
		"text-403-header":            {http.StatusForbidden, "1", "no", 5},
		"text-429":                   {http.StatusTooManyRequests, "", "no", 5},
		"text-500":                   {http.StatusInternalServerError, "", "no", 5},
		"text-501":                   {http.StatusNotImplemented, "", "no", 5},
		"text-502":                   {http.StatusBadGateway, "", "no", 5},
		"text-503":                   {http.StatusServiceUnavailable, "", "no", 1},
		"text-503-header":            {http.StatusServiceUnavailable, "0", "no", 11},
		"text-504":                   {http.StatusGatewayTimeout, "", "no", 5},
		"status-forbidden":           {http.StatusForbidden, "", status(`"reason":"Forbidden","code":403`), 1},
		"status-forbidden-500":       {http.StatusInternalServerError, "", status(`"reason":"Forbidden","code":403`), 1},
		"status-forbidden-header":    {http.StatusForbidden, "1", status(`"reason":"Forbidden","code":403`), 1},
		"status-forbidden-seconds":   {http.StatusForbidden, "", status(`"reason":"Forbidden","code":403,"details":{"retryAfterSeconds":1}`), 5},
		"status-forbidden-0-seconds": {http.StatusForbidden, "", status(`"reason":"Forbidden","code":403,"details":{"retryAfterSeconds":0}`), 1},
		"status-server-timeout":      {http.StatusForbidden, "", status(`"reason":"ServerTimeout","code":403,"details":{"kind":"x"}`), 5},
		"status-internal-error":      {http.StatusForbidden, "", status(`"reason":"InternalError","code":403`), 5},
		"status-timeout":             {http.StatusForbidden, "", status(`"reason":"Timeout","code":403`), 5},
		"status-unknown-500":         {http.StatusForbidden, "", status(`"reason":"Odd","code":500`), 5},
		"status-unknown-503":         {http.StatusForbidden, "", status(`"reason":"Odd","code":503`), 1},
		"status-forbidden-code-429":  {http.StatusForbidden, "", status(`"reason":"Forbidden","code":429`), 5},
	}
}

// After apiserver/pkg/util/webhook/webhook_test.go (TestWithExponentialBackoff…): which responses of a webhook
// are retried, by code, header, and Status.
func TestTokenWebhookIsAskedAgain(t *testing.T) {
	rows := refusedReviews()
	var mutex sync.Mutex
	asked := map[string]int{}
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mutex.Lock()
		asked[review.Spec.Token]++
		mutex.Unlock()
		row := rows[review.Spec.Token]
		contentType := "text/plain"
		if strings.HasPrefix(row.body, "{") {
			contentType = "application/json"
		}
		w.Header().Set("Content-Type", contentType)
		if row.retryAfter != "" {
			w.Header().Set("Retry-After", row.retryAfter)
		}
		w.WriteHeader(row.code)
		fmt.Fprint(w, row.body)
	}))
	t.Cleanup(webhook.Close)
	config := serve(t, "--authentication-token-webhook-config-file="+kubeconfigOf(t, webhook, filepath.Join(t.TempDir(), "webhook")), "--authentication-token-webhook-version=v1")
	var all sync.WaitGroup
	for token := range rows {
		all.Go(func() {
			if _, err := whoami(config, token); !apierrors.IsUnauthorized(err) {
				t.Error(token, err)
			}
		})
	}
	all.Wait()
	for token, row := range rows {
		if asked[token] != row.times {
			t.Errorf("%s: asked %d times, expected %d", token, asked[token], row.times)
		}
	}
}
